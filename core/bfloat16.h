#pragma once

#include <bit>
#include <cstdint>

namespace tern {

/// The upper half of an IEEE float: 8 bits of exponent, 7 of mantissa. Rounds to nearest even.
struct BFloat16 {
  uint16_t bits = 0;

  constexpr BFloat16() = default;
  constexpr BFloat16(float value) {
    const auto word = std::bit_cast<uint32_t>(value);
    const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    const uint32_t rounded = word + 0x7fffu + ((word >> 16) & 1u);
    bits = static_cast<uint16_t>(is_nan ? (word >> 16) | 0x40u : rounded >> 16);
  }
  constexpr operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

}  // namespace tern
