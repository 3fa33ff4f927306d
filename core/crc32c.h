#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tern {

/// CRC-32C (Castagnoli's polynomial, RFC 3720 B.4) of `bytes`; `crc` is that of the bytes before them, 0 at the start.
/// Uses the processor's instruction where it has one.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

namespace detail {
/// The same from tables, eight bytes at a time.
uint32_t crc32c_table(std::span<const std::byte> bytes, uint32_t crc);
/// The same by the processor's instruction; null where it has none.
using Crc32c = uint32_t (*)(std::span<const std::byte> bytes, uint32_t crc);
Crc32c crc32c_instruction();
}  // namespace detail

}  // namespace tern
