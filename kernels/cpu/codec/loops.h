#pragma once

#include <cstddef>
#include <cstdint>

namespace tern::cpu::codec {

/// A chunk is 256 elements: 8 groups of 32, whose draws are the 8 halves of the words of 32 Philox blocks.
inline constexpr int kChunk = 256, kGroup = 32, kLanes = 16;

/// What Philox takes for the blocks of one random stream: the keys of the ten rounds, and the counter's last words.
struct DrawKeys {
  uint32_t key[10][2];
  uint32_t counter[3];
};

/// The loops of one instruction set over whole chunks, groups and rows; the arithmetic is that of codec_arithmetic.h.
struct Loops {
  /// planes[8·bits words] = the codes of a chunk whose draws begin at Philox block `block`. undecided[8 words], a bit
  /// for each element: its 16 random bits do not decide, and its code is worthless.
  void (*quantize)(const DrawKeys& keys, uint32_t block, const float* g, const float* factors, float limit, int bits,
                   uint32_t* planes, uint32_t* undecided);
  /// y[32] += the values of a group's codes; units[32].
  void (*dequantize_add)(const uint32_t* planes, int bits, const float* units, float* y);
  /// Largest |x|, Σx, Σx² of `count` elements: in 16 interleaved sums, folded in halves.
  void (*statistics)(const float* x, int64_t count, double& largest, double& sum, double& squares);
};

/// Those for this processor.
const Loops& loops();

extern const Loops baseline_loops, avx2_loops, avx512_loops;

}  // namespace tern::cpu::codec
