#include <nmmintrin.h>
#include <wmmintrin.h>

#include <cstring>

#include "tern/core/x86/crc32c.h"

namespace tern {
namespace {

/// Three checksums run side by side: the CRC instruction has a latency of three cycles, but one can start in each
/// cycle.
constexpr size_t kLane = 1024;  // bytes

/// Returns `crc` after `Bytes` more zero bytes. The product of two bit-reflected words lies one bit too low, and the
/// CRC instruction multiplies by x^32: hence 33.
template <size_t Bytes>
__attribute__((target("sse4.2,pclmul"))) uint64_t advance(uint64_t crc) {
  static constexpr uint32_t kFactor = detail::power_of_x(8 * Bytes - 33);
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<int64_t>(crc)),
                                               _mm_cvtsi64_si128(static_cast<int64_t>(kFactor)), 0);
  return _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(product)));
}

uint64_t word_at(const std::byte* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, 8);
  return word;
}

}  // namespace

__attribute__((target("sse4.2,pclmul"))) uint32_t detail::crc32c_sse42(std::span<const std::byte> bytes, uint32_t crc) {
  uint64_t sum = ~crc;
  for (; bytes.size() >= 3 * kLane; bytes = bytes.subspan(3 * kLane)) {
    uint64_t second = 0, third = 0;
    for (const std::byte* at = bytes.data(); at != bytes.data() + kLane; at += 8) {
      sum = _mm_crc32_u64(sum, word_at(at));
      second = _mm_crc32_u64(second, word_at(at + kLane));
      third = _mm_crc32_u64(third, word_at(at + 2 * kLane));
    }
    sum = advance<2 * kLane>(sum) ^ advance<kLane>(second) ^ third;
  }
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) sum = _mm_crc32_u64(sum, word_at(bytes.data()));
  auto tail = static_cast<uint32_t>(sum);
  for (std::byte byte : bytes) tail = _mm_crc32_u8(tail, static_cast<uint8_t>(byte));
  return ~tail;
}

}  // namespace tern
