#include <immintrin.h>

#include "tern/kernels/cpu/simd/make_codec_loops.h"
#include "tern/kernels/cpu/x86/kernels.h"

namespace tern::cpu::simd {
namespace {

/// Brings the lanes whose bit is set in the index to the front, in their order: a byte for each lane, the first lane's
/// lowest.
struct FrontLanes {
  constexpr FrontLanes() : lanes() {
    for (int set = 0; set < 256; ++set)
      for (int lane = 0, count = 0; lane < 8; ++lane)
        if ((set >> lane & 1) != 0) lanes[set] |= static_cast<uint64_t>(lane) << 8 * count++;
  }
  uint64_t lanes[256];
};
constexpr FrontLanes kFront;

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
  static Floats add_exact_product(const Floats& a, const Floats& b, const Floats& c) {
    return _mm256_fmadd_ps(a, b, c);
  }
  static __m256d add_exact_product(const __m256d& a, const __m256d& b, const __m256d& c) {
    return _mm256_fmadd_pd(a, b, c);
  }
  /// The bits of vector n, each in the top bit of its lane. The other bits may be set, too.
  static Words top_signs(const uint32_t* words, int64_t n) {
    const auto byte = reinterpret_cast<const char*>(words)[n];
    return reinterpret_cast<Words>(
        _mm256_sllv_epi32(_mm256_set1_epi8(byte), _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24)));
  }
  static Mask mask(const uint32_t* words, int64_t n) { return reinterpret_cast<Mask>(top_signs(words, n)); }
  /// Reads the top bit of each lane of the mask.
  static Floats choose(const Mask& mask, const Floats& a, const Floats& b) {
    return _mm256_blendv_ps(b, a, reinterpret_cast<__m256>(mask));
  }
  static Floats flip(const Floats& v, const uint32_t* words, int64_t n) {
    return reinterpret_cast<Floats>(reinterpret_cast<Words>(v) ^ (top_signs(words, n) & 0x80000000u));
  }
  static __m256d widen(const float* from) { return _mm256_cvtps_pd(_mm_loadu_ps(from)); }
  /// The lanes whose top bit in `left_out` is not set, followed by any lanes.
  static Words compress(const Words& lanes, const Words& left_out) {
    const __m256i order = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(kFront.lanes[~top_bits(left_out) & 0xff]));
    return reinterpret_cast<Words>(_mm256_permutevar8x32_epi32(reinterpret_cast<__m256i>(lanes), order));
  }
  /// -1 in each byte whose bit is set.
  static __m256i expand(uint32_t plane) {
    const __m256i bytes =
        _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int32_t>(plane)),
                            _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
    const __m256i bit = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
    return _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
  }
  /// The levels of a group's codes, with their signs, as bytes.
  template <int kBits>
  static __m256i levels(const uint32_t* planes) {
    __m256i negative = expand(planes[kBits - 1]);
#pragma GCC unroll 8
    for (int bit = kBits - 2; bit > 0; --bit)
      negative = _mm256_add_epi8(_mm256_add_epi8(negative, negative), expand(planes[bit]));
    const __m256i sign = expand(planes[0]);
    return _mm256_sub_epi8(_mm256_xor_si256(sign, _mm256_sub_epi8(_mm256_setzero_si256(), negative)), sign);
  }
  static Mask widen_levels(const int8_t* levels) {
    return reinterpret_cast<Mask>(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(levels))));
  }
  static Wide multiply(const Wide& a, const Wide& b) {
    return reinterpret_cast<Wide>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
  }
};

}  // namespace

constinit const CodecLoops avx2_codec_loops = make_codec_loops<Avx2>();

}  // namespace tern::cpu::simd
