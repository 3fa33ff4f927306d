#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tern/core/random.h"
#include "tern/kernels/codec.h"

// The arithmetic of one element, and its random numbers. Every target repeats it operation by operation. Without
// contraction to fused multiply-add it gives the same bits everywhere.

namespace tern::kernels {

/// The seed of a message, from which both sides draw.
constexpr uint64_t drawn_seed(const RandomKey& key) {
  const auto words = RandomStream(key).block(0);
  return uint64_t{words[1]} << 32 | words[0];
}

/// Number of elements in a chunk. A chunk draws its random numbers from 32 Philox blocks: element 32·j + i of the chunk
/// takes half j % 2 of word j / 2 of the chunk's block i. A vector of blocks therefore serves a vector of neighbouring
/// elements without a shuffle.
inline constexpr int64_t kCodecChunk = 256;
inline constexpr int64_t kCodecGroup = 32;

constexpr std::array<uint32_t, 4> codec_block(const RandomStream& stream, uint64_t element) {
  return stream.block(static_cast<uint32_t>(element / kCodecChunk * kCodecGroup + element % kCodecGroup));
}
constexpr uint32_t codec_half(const std::array<uint32_t, 4>& words, int64_t half) {
  return words[static_cast<size_t>(half / 2)] >> (16 * (half % 2)) & 0xffffu;
}
/// The 16 random bits of an element.
constexpr uint32_t codec_draw(const RandomStream& stream, uint64_t element) {
  return codec_half(codec_block(stream, element), static_cast<int64_t>(element % kCodecChunk / kCodecGroup));
}

/// The next 32 random bits of an element, used if its first 16 do not decide. Only these draws use blocks from 2^31 on.
constexpr uint32_t codec_further_draw(const RandomStream& stream, uint64_t element) {
  return stream.block(0x80000000u | static_cast<uint32_t>(element / 4))[element % 4];
}

/// Units below this count as zero, because 65536 / unit could overflow f32.
inline constexpr float kSmallestUnit = 0x1p-110f;
constexpr float codec_factor(float unit) { return unit < kSmallestUnit ? 0.0f : 65536.0f / unit; }

/// x clipped to ±most. NaN stays NaN.
constexpr float codec_clipped(float x, float most) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), sign = bits & 0x80000000u;
  return std::bit_cast<float>(bits ^ sign) > most ? std::bit_cast<float>(std::bit_cast<uint32_t>(most) | sign) : x;
}

/// min(|x| · factor, limit): |x| in units, as 16.16 fixed point with the float's further fraction bits. `limit` =
/// 65536·levels. NaN gives `limit`.
constexpr float codec_scaled(float x, float factor, float limit) {
  const float scaled = std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0x7fffffffu) * factor;
  return scaled < limit ? scaled : limit;
}

/// Whether the 16 random bits decide the level. `drawn` is the scaled element plus these bits. They decide unless the
/// low 16 bits of `drawn` are all ones: the bits that follow could then carry.
constexpr bool codec_decides(uint32_t drawn) { return (drawn & 0xffffu) != 0xffffu; }

/// Stochastic rounding to a level: floor(scaled / 65536 + U), with U uniform in [0, 1). `draw` holds the first 16 bits
/// of U. If they do not decide, `further()` gives 32 more bits.
template <class Further>
constexpr uint32_t codec_level(float scaled, uint32_t draw, Further&& further) {
  const auto whole = static_cast<uint32_t>(scaled);
  const uint32_t drawn = whole + draw;
  if (codec_decides(drawn)) return drawn >> 16;
  const double rest = static_cast<double>(scaled - static_cast<float>(whole));
  return (drawn + (rest + further() * 0x1p-32 >= 1 ? 1u : 0u)) >> 16;
}

/// The code of x: its level, then its sign in the lowest bit.
constexpr uint32_t codec_code(float x, uint32_t level) {
  return level == 0 ? 0 : level << 1 | std::bit_cast<uint32_t>(x) >> 31;
}

/// The plane of one bit of the codes of one group, in the codes of n elements. `at` is its offset in bytes. `elements`
/// is the number of elements in the group, 0 if the group lies beyond the last element.
struct CodecPlane {
  int64_t at;
  int elements;

  constexpr int bytes() const { return (elements + 7) / 8; }
  constexpr uint32_t mask() const { return static_cast<uint32_t>((uint64_t{1} << elements) - 1); }
};
constexpr CodecPlane codec_plane(int64_t n, int bits, int64_t group, int bit) {
  const auto elements = static_cast<int>(std::clamp<int64_t>(n - group * kCodecGroup, 0, kCodecGroup));
  return {group * 4 * bits + bit * ((elements + 7) / 8), elements};
}

/// Statistics are summed over runs of this many elements. A run has `kStatisticsLanes` interleaved sums; if its last
/// row is short, zeros fill it up. The lanes of a run are then added in halves. The runs of a bucket are added as a
/// binary tree.
inline constexpr int64_t kStatisticsRun = 4096;
inline constexpr int kStatisticsLanes = 16;

/// max |x|, Σx, Σx²
struct CodecSums {
  double largest = 0, sum = 0, squares = 0;
};
constexpr CodecSums operator+(const CodecSums& a, const CodecSums& b) {
  return {std::max(a.largest, b.largest), a.sum + b.sum, a.squares + b.squares};
}

/// The unit of a bucket of `count` elements, rounded to f32. A maximum can lose NaN, so NaN and infinities are detected
/// in Σx².
constexpr float codec_unit(const UnitRule& rule, const CodecSums& sums, int64_t count) {
  constexpr double kMost = std::numeric_limits<double>::max();
  double length = sums.largest;
  if (rule.norm == BucketNorm::l2 || !(sums.squares <= kMost)) {
    length = ::sqrt(sums.squares);
  } else if (rule.norm != BucketNorm::max && count > 1) {
    const double mean = sums.sum / static_cast<double>(count);
    const double variance = std::max(0.0, sums.squares / static_cast<double>(count) - mean * mean);
    const double limit = rule.clip * ::sqrt(variance);
    length = rule.norm == BucketNorm::deviations ? limit : std::min(sums.largest, limit);
  }
  return static_cast<float>(length / static_cast<double>(rule.levels));
}

/// The f from 0 to 1 with which f·d is nearest to g. The sums are Σgd as `sum`, and Σd². If d is zero, f is 1.
constexpr float codec_nearest(const CodecSums& sums) {
  const double factor = sums.sum / sums.squares;
  return !(factor < 1) ? 1.0f : factor > 0 ? static_cast<float>(factor) : 0.0f;
}

/// Adds the sums as a binary tree: adds neighbours until one sum is left. If the count is odd, the last one moves up
/// alone. Overwrites `sums`.
constexpr CodecSums codec_tree(CodecSums* sums, int64_t count) {
  for (; count > 1; count = (count + 1) / 2) {
    for (int64_t i = 0; i < count / 2; ++i) sums[i] = sums[2 * i] + sums[2 * i + 1];
    if (count % 2 == 1) sums[count / 2] = sums[count - 1];
  }
  return count == 0 ? CodecSums{} : sums[0];
}

}  // namespace tern::kernels
