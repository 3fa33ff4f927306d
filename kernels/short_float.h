#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tern/core/dtype.h"
#include "tern/kernels/kernel.h"

namespace tern {

/// Returns the bits of `value` as IEEE binary16: 5 bits of exponent, 10 of mantissa. Rounds to nearest even. Magnitudes
/// of 65520 or more, and NaN, become infinity.
constexpr uint16_t half_bits(float value) {
  const auto word = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = word & 0x7fffffffu, sign = word >> 16 & 0x8000u;
  const uint32_t normal = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
  // After adding 0.5, the last bit of the float is that of a subnormal half, so the addition rounds as needed.
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t finite = magnitude >= 0x38800000u ? normal : subnormal;
  return static_cast<uint16_t>(sign | (magnitude >= 0x477ff000u ? 0x7c00u : finite));  // 65520 and more
}

constexpr float half_value(uint16_t bits) {
  const float magnitude = std::bit_cast<float>(static_cast<uint32_t>(bits & 0x7fffu) << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | static_cast<uint32_t>(bits & 0x8000u) << 16);
}

}  // namespace tern

// Gradients as 16-bit floats, little-endian. The gradients are f32, row-major. Every target gives the same bits.

namespace tern::kernels {

enum class ShortFloat : uint8_t {
  half,   ///< IEEE binary16
  brain,  ///< bfloat16
};

constexpr uint16_t short_bits(float value, ShortFloat format) {
  return format == ShortFloat::half ? half_bits(value) : BFloat16(value).bits;
}
/// Returns the value of `bits`. A half that is not finite gives NaN.
constexpr float short_value(uint16_t bits, ShortFloat format) {
  if (format == ShortFloat::brain) return std::bit_cast<float>(uint32_t{bits} << 16);
  return (bits & 0x7c00u) == 0x7c00u ? std::numeric_limits<float>::quiet_NaN() : half_value(bits);
}
/// Calls function(format) with the format as a compile-time constant.
template <class Function>
void visit_short(ShortFloat format, Function function) {
  if (format == ShortFloat::half)
    function(std::integral_constant<ShortFloat, ShortFloat::half>{});
  else
    function(std::integral_constant<ShortFloat, ShortFloat::brain>{});
}

/// codes [u8, 2n] = the elements of x [n], each rounded to nearest, ties to even. In format half, magnitudes of 65520
/// or more, and NaN, become infinity.
inline constinit Kernel<void(const Tensor& x, ShortFloat, Tensor& codes)> shorten{"shorten"};

/// sum [n] += each message, one after another. messages: u8 [messages, bytes]. In each message, the codes begin at byte
/// `codes_at`, an even number.
inline constinit Kernel<void(const Tensor& messages, int64_t codes_at, ShortFloat, Tensor& sum)> widen_add{"widen_add"};

/// These throw an error that names the operation if the arguments do not fit each other.
void check_shorten(const Tensor& x, const Tensor& codes);
void check_widen(const Tensor& messages, int64_t codes_at, const Tensor& sum);

}  // namespace tern::kernels
