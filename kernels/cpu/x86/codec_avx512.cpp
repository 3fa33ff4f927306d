#include <immintrin.h>

#include "tern/kernels/cpu/simd/make_codec_loops.h"
#include "tern/kernels/cpu/x86/kernels.h"

namespace tern::cpu::simd {
namespace {

struct Avx512 : VectorOperations<16> {
  static constexpr int kRadix = 16;
  using Mask = __mmask16;
  using Wide = Vector<uint64_t, kWidth / 2>;

  static uint32_t top_bits(const Words& words) { return _mm512_movepi32_mask(reinterpret_cast<__m512i>(words)); }
  static uint32_t bits(Mask mask) { return mask; }
  static Floats add_exact_product(const Floats& a, const Floats& b, const Floats& c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  static __m512d add_exact_product(const __m512d& a, const __m512d& b, const __m512d& c) {
    return _mm512_fmadd_pd(a, b, c);
  }
  static Mask greater(const Floats& a, const Floats& b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
  static Floats choose(Mask mask, const Floats& a, const Floats& b) { return _mm512_mask_mov_ps(b, mask, a); }
  static Mask mask(const uint32_t* words, int64_t n) {
    return load<Mask>(reinterpret_cast<const char*>(words) + n * (kWidth / 8));
  }
  static Floats flip(const Floats& v, const uint32_t* words, int64_t n) {
    const auto bits = reinterpret_cast<__m512i>(v);
    const __m512i flipped = _mm512_mask_xor_epi32(bits, mask(words, n), bits, _mm512_set1_epi32(1 << 31));
    return reinterpret_cast<Floats>(flipped);
  }
  /// The lanes whose top bit in `left_out` is not set, followed by zeros.
  static Words compress(const Words& lanes, const Words& left_out) {
    const auto mask = static_cast<__mmask16>(~top_bits(left_out));
    return reinterpret_cast<Words>(_mm512_maskz_compress_epi32(mask, reinterpret_cast<__m512i>(lanes)));
  }
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
