#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tern {

/// CRC-32C (Castagnoli's polynomial, RFC 3720 B.4) of `bytes`. `crc` is the checksum of the bytes before them, 0 at the
/// start. Uses the processor's CRC instructions if it has them.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

namespace detail {
/// `value` times x, modulo Castagnoli's polynomial. Bit 0 holds the highest power.
constexpr uint32_t times_x(uint32_t value) { return (value >> 1) ^ (value & 1 ? 0x82F63B78u : 0u); }
/// The same checksum from tables, eight bytes at a time.
uint32_t crc32c_table(std::span<const std::byte> bytes, uint32_t crc);
using Crc32c = uint32_t (*)(std::span<const std::byte> bytes, uint32_t crc);
/// The versions of `crc32c` that use instructions of this processor, fastest first. Empty if it has none.
std::span<const Crc32c> crc32c_instructions();
}  // namespace detail

}  // namespace tern
