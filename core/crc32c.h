#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tern {

/// CRC-32C (Castagnoli's polynomial, RFC 3720 B.4) of `bytes`; `crc` is that of the bytes before them, 0 at the start.
/// Uses the processor's instructions where it has them.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

namespace detail {
/// A polynomial modulo Castagnoli's, times x; the highest power is in bit 0.
constexpr uint32_t times_x(uint32_t value) { return (value >> 1) ^ (value & 1 ? 0x82F63B78u : 0u); }
/// The same from tables, eight bytes at a time.
uint32_t crc32c_table(std::span<const std::byte> bytes, uint32_t crc);
using Crc32c = uint32_t (*)(std::span<const std::byte> bytes, uint32_t crc);
/// The same by what instructions this processor has, the fastest first; none where it has none.
std::span<const Crc32c> crc32c_instructions();
}  // namespace detail

}  // namespace tern
