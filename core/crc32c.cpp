#include "tern/core/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

namespace tern {
namespace {

static_assert(std::endian::native == std::endian::little);

using Tables = std::array<std::array<uint32_t, 256>, 8>;

/// tables[k][b]: the change of the checksum by byte b if k more bytes follow it.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = detail::times_x(crc);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 0xff];
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

uint32_t detail::crc32c_table(std::span<const std::byte> bytes, uint32_t crc) {
  crc = ~crc;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    word ^= crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][word >> 8 * k & 0xff];
  }
  for (std::byte byte : bytes) crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<uint32_t>(byte)) & 0xff];
  return ~crc;
}

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc) {
  static const detail::Crc32c fastest =
      detail::crc32c_instructions().empty() ? detail::crc32c_table : detail::crc32c_instructions().front();
  return fastest(bytes, crc);
}

}  // namespace tern
