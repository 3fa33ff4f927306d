#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tern/core/random.h"
#include "tern/kernels/codec.h"

// The arithmetic of one element, which every target repeats operation by operation: without contraction it gives the
// same bits everywhere.

namespace tern::kernels {

/// Elements whose draws share 32 Philox blocks: element 32·j + i of a chunk takes half j % 2 of word j / 2 of the
/// chunk's block i. So a vector of blocks serves a vector of neighbouring elements without a shuffle.
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

/// The 32 bits that follow an element's 16 where those do not decide; blocks from 2^31 on serve nothing else.
constexpr uint32_t codec_further_draw(const RandomStream& stream, uint64_t element) {
  return stream.block(0x80000000u | static_cast<uint32_t>(element / 4))[element % 4];
}

/// Units below this count as zero: beside them 65536 / unit would leave f32.
inline constexpr float kSmallestUnit = 0x1p-110f;
constexpr float codec_factor(float unit) { return unit < kSmallestUnit ? 0.0f : 65536.0f / unit; }

/// |x| in units, in 16.16 fixed point with a float's fraction beyond it; `limit` = 65536·levels. NaN gives `limit`.
constexpr float codec_scaled(float x, float factor, float limit) {
  const float scaled = std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0x7fffffffu) * factor;
  return scaled < limit ? scaled : limit;
}

/// Whether the sum of a scaled element and its 16 random bits settles its level: unless it ends in ones, to which the
/// bits that follow can carry.
constexpr bool codec_decides(uint32_t sum) { return (sum & 0xffffu) != 0xffffu; }

/// Stochastic rounding to a level: floor(scaled / 65536 + U), U uniform in [0, 1). `draw` holds the first 16 bits of U;
/// where they do not decide, `further()` gives 32 bits more.
template <class Further>
constexpr uint32_t codec_level(float scaled, uint32_t draw, Further&& further) {
  const auto whole = static_cast<uint32_t>(scaled);
  const uint32_t sum = whole + draw;
  if (codec_decides(sum)) return sum >> 16;
  const double rest = static_cast<double>(scaled - static_cast<float>(whole));
  return (sum + (rest + further() * 0x1p-32 >= 1 ? 1u : 0u)) >> 16;
}

/// Sign and level of x as a code.
constexpr uint32_t codec_code(float x, uint32_t level) {
  return level == 0 ? 0 : level << 1 | std::bit_cast<uint32_t>(x) >> 31;
}

/// Where bit `bit` of a group's codes stands among those of n elements, and of how many elements; none beyond the last.
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

/// Statistics are summed over runs of this many elements, each in `kStatisticsLanes` interleaved sums (the last row of
/// a run filled up with zeros); the lanes are folded in halves, and the runs of a bucket added as a binary tree.
inline constexpr int64_t kStatisticsRun = 4096;
inline constexpr int kStatisticsLanes = 16;

/// max |x|, Σx, Σx²
struct CodecSums {
  double largest = 0, sum = 0, squares = 0;
};
constexpr CodecSums operator+(const CodecSums& a, const CodecSums& b) {
  return {std::max(a.largest, b.largest), a.sum + b.sum, a.squares + b.squares};
}

/// f32(norm / levels). NaN and infinities reach Σx² whatever becomes of them in a maximum.
constexpr float codec_unit(BucketNorm norm, double largest, double squares, int64_t levels) {
  constexpr double kMost = std::numeric_limits<double>::max();
  const double length = norm == BucketNorm::l2 || !(squares <= kMost) ? sqrt(squares) : largest;
  return static_cast<float>(length / static_cast<double>(levels));
}

/// The binary tree: neighbours are added until one is left, an odd last one moving up alone. Overwrites `sums`.
constexpr CodecSums codec_tree(CodecSums* sums, int64_t count) {
  for (; count > 1; count = (count + 1) / 2) {
    for (int64_t i = 0; i < count / 2; ++i) sums[i] = sums[2 * i] + sums[2 * i + 1];
    if (count % 2 == 1) sums[count / 2] = sums[count - 1];
  }
  return count == 0 ? CodecSums{} : sums[0];
}

}  // namespace tern::kernels
