#pragma once

#include <limits>
#include <type_traits>

#include "tern/core/dtype.h"
#include "tern/kernels/half.h"
#include "tern/kernels/kernel.h"

// Gradients as floats of 16 bits, little-endian. f32, row-major. Every target gives the same bits.

namespace tern::kernels {

enum class ShortFloat : uint8_t {
  half,   ///< IEEE binary16
  brain,  ///< bfloat16
};

constexpr uint16_t short_bits(float value, ShortFloat format) {
  return format == ShortFloat::half ? half_bits(value) : BFloat16(value).bits;
}
/// NaN for a half that is not finite.
constexpr float short_value(uint16_t bits, ShortFloat format) {
  if (format == ShortFloat::brain) return std::bit_cast<float>(uint32_t{bits} << 16);
  return (bits & 0x7c00u) == 0x7c00u ? std::numeric_limits<float>::quiet_NaN() : half_value(bits);
}
/// function(format) with the format as a constant.
template <class Function>
void visit_short(ShortFloat format, Function function) {
  if (format == ShortFloat::half)
    function(std::integral_constant<ShortFloat, ShortFloat::half>{});
  else
    function(std::integral_constant<ShortFloat, ShortFloat::brain>{});
}

/// codes [u8, 2n] = the elements of x [n], each rounded to the nearest, ties to even; beyond the largest half:
/// infinite.
inline constinit Kernel<void(const Tensor& x, ShortFloat, Tensor& codes)> shorten{"shorten"};

/// sum [n] += each message in turn: messages u8 [messages, bytes], of which each holds the codes from `codes_at`, an
/// even number, on.
inline constinit Kernel<void(const Tensor& messages, int64_t codes_at, ShortFloat, Tensor& sum)> widen_add{"widen_add"};

/// Errors that name the operation where arguments do not fit each other.
void check_shorten(const Tensor& x, const Tensor& codes);
void check_widen(const Tensor& messages, int64_t codes_at, const Tensor& sum);

}  // namespace tern::kernels
