#pragma once

#include <span>

#include "tern/kernels/codec.h"
#include "tern/kernels/kernel.h"

// The code of 1-bit SGD (Seide et al., 2014): the sign of each element, and for each row of `width` elements the mean
// of its negative elements and the mean of the others. The code of a tensor is these pairs of f32, then the signs,
// eight per byte, the first in the lowest bit. One call handles all gradients of a message. Gradients are f32,
// row-major. Every target gives the same bits, unless a value is NaN.

namespace tern::kernels {

/// A gradient of a message, and its code.
struct OneBitGradient {
  Tensor g;
  int64_t width;
  Tensor codes;  ///< u8 [onebit_bytes]
};
/// A gradient in the messages of several ranks.
struct OneBitSum {
  Tensor sum;
  int64_t width;
  int64_t codes_at;  ///< offset in bytes of its code in each message
};
inline const Tensor& placement(std::span<const OneBitGradient> message) {
  return placement_of(message, &OneBitGradient::g);
}
inline const Tensor& placement(std::span<const OneBitSum> message) { return placement_of(message, &OneBitSum::sum); }

/// Bytes of the code of n elements in whole rows.
constexpr int64_t onebit_bytes(int64_t n, int64_t width) { return n == 0 ? 0 : 8 * (n / width) + (n + 7) / 8; }

/// codes = the code of g, for each gradient.
inline constinit Kernel<void(std::span<const OneBitGradient>)> onebit_encode{"onebit_encode"};

/// sum += the means of the elements' signs, one message after another. messages: u8 [messages, bytes].
inline constinit Kernel<void(std::span<const OneBitSum>, const Tensor& messages)> onebit_decode_add{
    "onebit_decode_add"};

/// The sums of a row. It has kOneBitLanes interleaved sums, which are then added in halves.
struct OneBitSums {
  double sum = 0, magnitudes = 0, negatives = 0;

  constexpr void add(float x) {
    sum += x;
    magnitudes += x < 0 ? -x : x;
    negatives += x < 0 ? 1 : 0;
  }
  constexpr OneBitSums operator+(const OneBitSums& b) const {
    return {sum + b.sum, magnitudes + b.magnitudes, negatives + b.negatives};
  }
  /// The mean of the negative elements, or of the others; 0 if there are none.
  constexpr float mean(bool of_negatives, int64_t width) const {
    const double count = of_negatives ? negatives : static_cast<double>(width) - negatives;
    const double total = (of_negatives ? sum - magnitudes : sum + magnitudes) / 2;
    return static_cast<float>(count == 0 ? 0 : total / count);
  }
};
inline constexpr int kOneBitLanes = 32;

/// These throw an error that names the operation if the arguments do not fit each other.
void check_onebit_encode(std::span<const OneBitGradient> message);
void check_onebit_decode(std::span<const OneBitSum> message, const Tensor& messages);

}  // namespace tern::kernels
