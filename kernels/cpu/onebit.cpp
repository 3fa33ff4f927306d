#include "tern/kernels/onebit.h"

#include <algorithm>
#include <cstring>

#include "tern/core/parallel.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

using namespace tern::kernels;

constexpr int64_t kGrain = 1 << 15;  // elements of a thread, at least

/// The two means of a row.
struct Means {
  float of_negatives, of_others;
};

Means means_of(const float* x, int64_t width) {
  double sum[kOneBitLanes] = {}, magnitudes[kOneBitLanes] = {}, negatives[kOneBitLanes] = {};
  const auto add = [&](const float* from, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const double value = from[i];
      sum[i] += value;
      magnitudes[i] += value < 0 ? -value : value;
      negatives[i] += value < 0 ? 1 : 0;
    }
  };
  const int64_t rest = width % kOneBitLanes;
  for (int64_t i = 0; i < width - rest; i += kOneBitLanes) add(x + i, kOneBitLanes);
  add(x + width - rest, rest);
  for (int half = kOneBitLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) {
      sum[i] += sum[i + half];
      magnitudes[i] += magnitudes[i + half];
      negatives[i] += negatives[i + half];
    }
  const OneBitSums sums = {sum[0], magnitudes[0], negatives[0]};
  return {sums.mean(true, width), sums.mean(false, width)};
}

void onebit_encode(std::span<const OneBitGradient> message) {
  check_onebit_encode(message);
  for (const auto& [g, row_width, codes] : message) {
    const int64_t n = g.numel(), width = row_width, rows = n / width;
    const float* const x = g.data<float>();
    uint8_t *const means = codes.data<uint8_t>(), *const signs = means + 8 * rows;
    parallel_for(0, rows, std::max<int64_t>(1, kGrain / width), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const Means pair = means_of(x + row * width, width);
        std::memcpy(means + 8 * row, &pair, sizeof pair);
      }
    });
    parallel_for(0, n / 8, kGrain / 8, [=](int64_t begin, int64_t end) {
      for (int64_t byte = begin; byte < end; ++byte) {
        uint32_t bits = 0;
        for (int i = 0; i < 8; ++i) bits |= (x[8 * byte + i] < 0 ? 1u : 0u) << i;
        signs[byte] = static_cast<uint8_t>(bits);
      }
    });
    for (int64_t i = n / 8 * 8; i < n; ++i)
      signs[n / 8] = static_cast<uint8_t>((i % 8 == 0 ? 0u : signs[n / 8]) | (x[i] < 0 ? 1u : 0u) << (i % 8));
  }
}

void onebit_decode_add(std::span<const OneBitSum> message, const Tensor& messages) {
  check_onebit_decode(message, messages);
  for (const auto& [sum, row_width, codes_at] : message) {
    const int64_t width = row_width, rows = sum.numel() / width, count = messages.size(0), step = messages.size(1);
    const uint8_t* const first = messages.data<uint8_t>() + codes_at;
    float* const y = sum.data<float>();
    parallel_for(0, rows, std::max<int64_t>(1, kGrain / width), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t i = 0; i < count; ++i) {
          const uint8_t *const means = first + i * step, *const signs = means + 8 * rows;
          Means pair;
          std::memcpy(&pair, means + 8 * row, sizeof pair);
          // A table, not a branch: signs are random, and a wrong guess costs as much as ten elements.
          const float by_sign[] = {pair.of_others, pair.of_negatives};
          for (int64_t e = row * width; e < (row + 1) * width; ++e) y[e] += by_sign[signs[e / 8] >> (e % 8) & 1u];
        }
    });
  }
}

}  // namespace

void provide_onebit() {
  kernels::onebit_encode.provide(Target::cpu, onebit_encode);
  kernels::onebit_decode_add.provide(Target::cpu, onebit_decode_add);
}

}  // namespace tern::cpu
