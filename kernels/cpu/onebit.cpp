#include "tern/kernels/onebit.h"

#include <algorithm>
#include <cstring>

#include "tern/kernels/cpu/simd/kernels.h"
#include "tern/kernels/cpu/vector.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

using namespace tern::kernels;

/// The two means of a row.
struct Means {
  float of_negatives, of_others;
};

Means means_of(const float* x, int64_t width) {
  double sum, magnitudes;
  int64_t negatives;
  simd::kernels().codec->sign_sums(x, width, sum, magnitudes, negatives);
  const OneBitSums sums = {sum, magnitudes, static_cast<double>(negatives)};
  return {sums.mean(true, width), sums.mean(false, width)};
}

static_assert(kOneBitLanes == simd::kGroup);

constexpr int64_t kChunk = 512;
/// Stores the signs of at most kChunk elements.
void store_signs(const float* x, int64_t count, uint8_t* signs) {
  uint8_t flags[kChunk] = {};
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) flags[i] = x[i] < 0 ? 1 : 0;
  for (int64_t byte = 0; byte < (count + 7) / 8; ++byte) {
    uint64_t eight;
    std::memcpy(&eight, flags + 8 * byte, sizeof eight);
    signs[byte] = static_cast<uint8_t>(eight * 0x0102040810204080u >> 56);  // bit i is the lowest one of byte i
  }
}

void onebit_encode(std::span<const OneBitGradient> message) {
  check_onebit_encode(message);
  for (const auto& [g, row_width, codes] : message) {
    const int64_t n = g.numel(), width = row_width, rows = n / width;
    const float* const x = g.data<float>();
    uint8_t *const means = codes.data<uint8_t>(), *const signs = means + 8 * rows;
    parallel_vectorized(rows, std::max<int64_t>(1, kGrain / width), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const Means pair = means_of(x + row * width, width);
        std::memcpy(means + 8 * row, &pair, sizeof pair);
      }
    });
    parallel_vectorized((n + kChunk - 1) / kChunk, kGrain / kChunk, [=](int64_t begin, int64_t end) {
      for (int64_t first = begin * kChunk; first < std::min(n, end * kChunk); first += kChunk)
        store_signs(x + first, std::min(kChunk, n - first), signs + first / 8);
    });
  }
}

/// y[e] += the mean of its sign, for elements [begin, end) of a row.
void add_means(const uint8_t* signs, const Means& means, uint64_t begin, uint64_t end, float* y) {
  // A table, not a branch: signs are random, and a wrong guess costs as much as ten elements.
  const float by_sign[] = {means.of_others, means.of_negatives};
  for (uint64_t e = begin; e < end; ++e) y[e] += by_sign[static_cast<uint32_t>(signs[e / 8]) >> (e % 8) & 1u];
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
          const uint8_t* const means = first + i * step;
          Means pair;
          std::memcpy(&pair, means + 8 * row, sizeof pair);
          add_means(means + 8 * rows, pair, static_cast<uint64_t>(row * width),
                    static_cast<uint64_t>((row + 1) * width), y);
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
