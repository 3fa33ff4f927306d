#include "tern/kernels/cpu/simd/make_codec_loops.h"

namespace tern::cpu::simd {
namespace {

/// Four lanes, for any processor.
struct Baseline : VectorOperations<4> {
  static constexpr int kRadix = 8;
  using Doubles = Vector<double, kWidth / 2>;
  using Wide = Vector<uint64_t, kWidth / 2>;

  static uint32_t top_bits(const Words& words) {
    uint32_t bits = 0;
    for (int i = 0; i < kWidth; ++i) bits |= words[i] >> 31 << i;
    return bits;
  }
  static uint32_t bits(const Mask& mask) { return top_bits(reinterpret_cast<Words>(mask)); }
  static const uint32_t* pack(const uint32_t* lanes) { return lanes; }
  static uint32_t top_bits_of_bytes(const uint32_t* lanes, int shift) {
    uint32_t bits = 0;
    for (int i = 0; i < kGroup; ++i) bits |= (lanes[i] << shift >> 7 & 1u) << i;
    return bits;
  }
  static Doubles widen(const float* from) { return Doubles{double{from[0]}, double{from[1]}}; }
  static Wide multiply(const Wide& a, const Wide& b) { return (a & 0xffffffffu) * (b & 0xffffffffu); }
};

}  // namespace

constinit const CodecLoops baseline_codec_loops = make_codec_loops<Baseline>();

}  // namespace tern::cpu::simd
