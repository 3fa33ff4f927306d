#include "tern/kernels/onebit.h"

#include <algorithm>
#include <cstring>

#include "tern/kernels/provide.h"

namespace tern::reference {
namespace {

using namespace tern::kernels;

OneBitSums row_sums(const float* x, int64_t width) {
  OneBitSums lanes[kOneBitLanes];
  for (int64_t i = 0; i < width; ++i) lanes[i % kOneBitLanes].add(x[i]);
  for (int half = kOneBitLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
  return lanes[0];
}

void onebit_encode(std::span<const OneBitGradient> message) {
  check_onebit_encode(message);
  for (const auto& [g, width, codes] : message) {
    const auto* const x = g.data<float>();
    auto* next = codes.data<uint8_t>();
    for (int64_t first = 0; first < g.numel(); first += width) {
      const OneBitSums sums = row_sums(x + first, width);
      for (const bool of_negatives : {true, false}) {
        const float mean = sums.mean(of_negatives, width);
        std::memcpy(next, &mean, sizeof mean);
        next += sizeof mean;
      }
    }
    std::fill(next, codes.data<uint8_t>() + codes.numel(), uint8_t{0});
    for (int64_t i = 0; i < g.numel(); ++i)
      if (x[i] < 0) next[i / 8] = static_cast<uint8_t>(next[i / 8] | 1u << (i % 8));
  }
}

void onebit_decode_add(std::span<const OneBitSum> message, const Tensor& messages) {
  check_onebit_decode(message, messages);
  for (const auto& [sum, width, codes_at] : message)
    for (int64_t row = 0; row < messages.size(0); ++row) {
      const uint8_t* const means = messages.data<uint8_t>() + row * messages.size(1) + codes_at;
      const uint8_t* const signs = means + 8 * (sum.numel() / width);
      for (int64_t i = 0; i < sum.numel(); ++i) {
        const bool is_negative = (signs[i / 8] >> (i % 8) & 1u) != 0;
        float mean;
        std::memcpy(&mean, means + 8 * (i / width) + (is_negative ? 0 : 4), sizeof mean);
        sum.data<float>()[i] += mean;
      }
    }
}

}  // namespace

void provide_onebit() {
  kernels::onebit_encode.provide(Target::reference, onebit_encode);
  kernels::onebit_decode_add.provide(Target::reference, onebit_decode_add);
}

}  // namespace tern::reference
