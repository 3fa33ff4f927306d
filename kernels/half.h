#pragma once

#include <bit>
#include <cstdint>

namespace tern {

/// IEEE binary16: 5 bits of exponent, 10 of mantissa. Rounds to nearest even; beyond 65504 it is infinite.
constexpr uint16_t half_bits(float value) {
  const auto word = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = word & 0x7fffffffu, sign = word >> 16 & 0x8000u;
  const uint32_t normal = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
  // Beside 0.5 the float's own rounding is that of a subnormal half.
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t finite = magnitude >= 0x38800000u ? normal : subnormal;
  return static_cast<uint16_t>(sign | (magnitude >= 0x477ff000u ? 0x7c00u : finite));  // 65520 and more
}

constexpr float half_value(uint16_t bits) {
  const float magnitude = std::bit_cast<float>(static_cast<uint32_t>(bits & 0x7fffu) << 13) * 0x1p112f;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | static_cast<uint32_t>(bits & 0x8000u) << 16);
}

}  // namespace tern
