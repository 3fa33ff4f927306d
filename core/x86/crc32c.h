#pragma once

#include <cstddef>
#include <cstdint>

#include "tern/core/crc32c.h"

namespace tern::detail {

/// Uses the CRC instruction, eight bytes at a time.
uint32_t crc32c_sse42(std::span<const std::byte> bytes, uint32_t crc);
/// Uses carry-less products of polynomials, 256 bytes at a time. The CRC instruction handles the rest.
uint32_t crc32c_avx512(std::span<const std::byte> bytes, uint32_t crc);

/// x^n modulo the polynomial. Bit 0 holds the highest power.
constexpr uint32_t power_of_x(size_t n) {
  uint32_t value = 0x80000000u;
  for (; n > 0; --n) value = times_x(value);
  return value;
}

}  // namespace tern::detail
