#include <immintrin.h>

#include "tern/kernels/cpu/simd/make_codec_loops.h"
#include "tern/kernels/cpu/x86/kernels.h"

namespace tern::cpu::simd {
namespace {

struct Avx512 {
  static constexpr int kWidth = 16;
  using Words = Vector<uint32_t, kWidth>;
  using Wide = Vector<uint64_t, kWidth / 2>;

  static uint32_t top_bits(const Words& words) { return _mm512_movepi32_mask(reinterpret_cast<__m512i>(words)); }
  static __m256i pack(const uint32_t* lanes) {
    const __m128i low = _mm512_maskz_cvtepi32_epi8(0xffff, _mm512_loadu_si512(lanes));
    const __m128i high = _mm512_maskz_cvtepi32_epi8(0xffff, _mm512_loadu_si512(lanes + kWidth));
    return _mm256_set_m128i(high, low);
  }
  static uint32_t top_bits_of_bytes(__m256i bytes, int shift) {
    return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_slli_epi16(bytes, shift)));
  }
  // With all-ones masks, because gcc 12 warns about its own header for the forms without masks.
  static __m512d widen(const float* from) { return _mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(from)); }
  static Wide multiply(const Wide& a, const Wide& b) {
    return reinterpret_cast<Wide>(
        _mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
  }
};

}  // namespace

constinit const CodecLoops avx512_codec_loops = make_codec_loops<Avx512>();

}  // namespace tern::cpu::simd
