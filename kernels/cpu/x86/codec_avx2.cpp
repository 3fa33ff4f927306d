#include <immintrin.h>

#include "tern/kernels/cpu/simd/make_codec_loops.h"
#include "tern/kernels/cpu/x86/kernels.h"

namespace tern::cpu::simd {
namespace {

struct Avx2 : VectorOperations<8> {
  static constexpr int kRadix = 8;
  using Wide = Vector<uint64_t, kWidth / 2>;

  static uint32_t top_bits(const Words& words) {
    return static_cast<uint32_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(words)));
  }
  static uint32_t bits(const Mask& mask) { return top_bits(reinterpret_cast<Words>(mask)); }
  /// AVX2 packs each half of 128 bits separately. After that, the groups of 32 bits are not in order. The last step
  /// puts these groups in order.
  static __m256i pack(const uint32_t* lanes) {
    const auto* v = reinterpret_cast<const __m256i*>(lanes);
    const __m256i low = _mm256_packus_epi32(_mm256_loadu_si256(v), _mm256_loadu_si256(v + 1));
    const __m256i high = _mm256_packus_epi32(_mm256_loadu_si256(v + 2), _mm256_loadu_si256(v + 3));
    return _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  }
  static uint32_t top_bits_of_bytes(__m256i bytes, int shift) {
    return static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_slli_epi16(bytes, shift)));
  }
  static __m256d widen(const float* from) { return _mm256_cvtps_pd(_mm_loadu_ps(from)); }
  static Wide multiply(const Wide& a, const Wide& b) {
    return reinterpret_cast<Wide>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
  }
};

}  // namespace

constinit const CodecLoops avx2_codec_loops = make_codec_loops<Avx2>();

}  // namespace tern::cpu::simd
