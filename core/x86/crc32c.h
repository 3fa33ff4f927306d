#pragma once

#include <cstddef>
#include <cstdint>

#include "tern/core/crc32c.h"

namespace tern::detail {

/// By the instruction for eight bytes.
uint32_t crc32c_sse42(std::span<const std::byte> bytes, uint32_t crc);
/// By products of polynomials, 256 bytes at a time; the rest by the instruction.
uint32_t crc32c_avx512(std::span<const std::byte> bytes, uint32_t crc);

/// x^n modulo the polynomial, the highest power in bit 0.
constexpr uint32_t power_of_x(size_t n) {
  uint32_t value = 0x80000000u;
  for (; n > 0; --n) value = times_x(value);
  return value;
}

}  // namespace tern::detail
