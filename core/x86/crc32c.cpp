#include "tern/core/crc32c.h"

#include <nmmintrin.h>

#include <cstring>

namespace tern {
namespace {

__attribute__((target("sse4.2"))) uint32_t crc32c_sse42(std::span<const std::byte> bytes, uint32_t crc) {
  uint64_t sum = ~crc;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    sum = _mm_crc32_u64(sum, word);
  }
  auto tail = static_cast<uint32_t>(sum);
  for (std::byte byte : bytes) tail = _mm_crc32_u8(tail, static_cast<uint8_t>(byte));
  return ~tail;
}

}  // namespace

detail::Crc32c detail::crc32c_instruction() { return __builtin_cpu_supports("sse4.2") ? crc32c_sse42 : nullptr; }

}  // namespace tern
