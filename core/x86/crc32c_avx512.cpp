#include <immintrin.h>

#include "tern/core/x86/crc32c.h"

#define TERN_AVX512 __attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2")))

namespace tern {
namespace {

/// Factors that move 16 bytes forward by `Bytes` bytes: the lower 8 bytes times `kLow`, plus the upper 8 bytes times
/// `kHigh`. The lower 8 bytes come first, so their powers are 64 higher. The product of two bit-reflected words lies
/// one bit too low: hence 31 and 33 instead of 32 and 32.
template <size_t Bytes>
constexpr uint64_t kLow = detail::power_of_x(8 * Bytes + 31);
template <size_t Bytes>
constexpr uint64_t kHigh = detail::power_of_x(8 * Bytes - 33);

/// Moves each of four 16-byte polynomials forward by `Bytes` bytes and adds it to `onto` (Gopal et al., "Fast CRC
/// Computation for Generic Polynomials Using PCLMULQDQ", Intel 2009).
template <size_t Bytes>
TERN_AVX512 __m512i fold(__m512i value, __m512i onto) {
  const __m512i factors = _mm512_broadcast_i32x4(_mm_set_epi64x(kHigh<Bytes>, kLow<Bytes>));
  const __m512i low = _mm512_clmulepi64_epi128(value, factors, 0x00);
  const __m512i high = _mm512_clmulepi64_epi128(value, factors, 0x11);
  return _mm512_ternarylogic_epi64(low, high, onto, 0x96);  // a ^ b ^ c
}

TERN_AVX512 __m128i fold16(__m128i value, __m128i onto) {
  const __m128i factors = _mm_set_epi64x(kHigh<16>, kLow<16>);
  return _mm_xor_si128(
      onto, _mm_xor_si128(_mm_clmulepi64_si128(value, factors, 0x00), _mm_clmulepi64_si128(value, factors, 0x11)));
}

}  // namespace

TERN_AVX512 uint32_t detail::crc32c_avx512(std::span<const std::byte> bytes, uint32_t crc) {
  constexpr size_t kVector = 64, kStride = 4 * kVector;
  if (bytes.size() < kStride) return crc32c_sse42(bytes, crc);
  const auto load = [&](size_t at) TERN_AVX512 { return _mm512_loadu_si512(bytes.data() + at * kVector); };
  __m512i a = _mm512_xor_si512(load(0), _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(~crc))));
  __m512i b = load(1), c = load(2), d = load(3);
  for (bytes = bytes.subspan(kStride); bytes.size() >= kStride; bytes = bytes.subspan(kStride)) {
    a = fold<kStride>(a, load(0));
    b = fold<kStride>(b, load(1));
    c = fold<kStride>(c, load(2));
    d = fold<kStride>(d, load(3));
  }
  const __m512i sum = fold<kVector>(fold<kVector>(fold<kVector>(a, b), c), d);
  __m128i last = fold16(_mm512_extracti32x4_epi32(sum, 0), _mm512_extracti32x4_epi32(sum, 1));
  last = fold16(last, _mm512_extracti32x4_epi32(sum, 2));
  last = fold16(last, _mm512_extracti32x4_epi32(sum, 3));
  const uint64_t low = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(last)));
  const auto all = static_cast<uint32_t>(_mm_crc32_u64(low, static_cast<uint64_t>(_mm_extract_epi64(last, 1))));
  return crc32c_sse42(bytes, ~all);
}

}  // namespace tern
