#pragma once

#include <bit>
#include <cstdint>

namespace tern {

/// IEEE binary16: 5 bits of exponent, 10 of mantissa. Rounds to nearest even; beyond 65504 it is infinite.
constexpr uint16_t half_bits(float value) {
  const auto word = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = word & 0x7fffffffu, sign = word >> 16 & 0x8000u;
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65520 and more
  if (magnitude >= 0x38800000u) {
    const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
    return static_cast<uint16_t>(sign | (rounded - 0x38000000u) >> 13);
  }
  // Beside 0.5 the float's own rounding is that of a subnormal half.
  const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
  return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(aligned) - 0x3f000000u));
}

constexpr float half_value(uint16_t bits) {
  const float magnitude = std::bit_cast<float>(static_cast<uint32_t>(bits & 0x7fffu) << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | static_cast<uint32_t>(bits & 0x8000u) << 16);
}

}  // namespace tern
