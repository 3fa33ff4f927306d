#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tern {

/// CRC-32C (Castagnoli's polynomial, RFC 3720 B.4) of `bytes`. `crc` is the checksum of the bytes before them, 0 at the
/// start. Uses the processor's CRC instructions if it has them.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

/// CRC-32C of a sequence of numbers and texts.
class Checksum {
 public:
  void add(int64_t value) { add(std::as_bytes(std::span(&value, 1))); }
  void add(const std::string& text) {
    add(std::ssize(text));
    add(std::as_bytes(std::span(text)));
  }
  uint32_t value() const { return crc_; }

 private:
  void add(std::span<const std::byte> bytes) { crc_ = crc32c(bytes, crc_); }
  uint32_t crc_ = 0;
};

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
