#pragma once

#include "tern/kernels/cpu/simd/codec_vectors.h"
#include "tern/kernels/cpu/simd/make_hadamard_loops.h"

// The codecs' loops of one instruction set. vector.h says what this file may contain. The including file defines `Isa`,
// a type with kWidth, `top_bits` (the top bit of each lane), `pack` (32 lanes with values below 256 to bytes),
// `top_bits_of_bytes`, `widen` (half a vector of floats to doubles) and `multiply` (the products of the lower halves of
// 64-bit lanes). It may also have `compress` (the lanes that are not left out, at the front), and `levels` (the levels
// of a group's codes, as bytes) with `widen_levels` (a vector of them to integers). The rest of `Isa` is
// `VectorOperations`, unless the instruction set has something better.

namespace tern::cpu::simd {
namespace {

/// Splits the codes of a group into planes. `split` reads the sign from the top bit of each 32-bit lane. `split_bytes`
/// first packs the lanes into bytes and reads the sign from the top bit of each byte.
template <class Isa>
inline void split(const uint32_t* lanes, int bits, uint32_t* planes) {
  using Words = Vector<uint32_t, Isa::kWidth>;
  const auto plane = [=](int shift) {
    uint32_t result = 0;
    for (int i = 0; i < kGroup; i += Isa::kWidth) result |= Isa::top_bits(load<Words>(lanes + i) << shift) << i;
    return result;
  };
  uint32_t nonzero = 0;
  for (int bit = 1; bit < bits; ++bit) nonzero |= planes[bit] = plane(32 - bit);
  planes[0] = plane(0) & nonzero;
}
template <class Isa>
inline void split_bytes(const uint32_t* lanes, int bits, uint32_t* planes) {
  const auto bytes = Isa::pack(lanes);
  uint32_t nonzero = 0;
  for (int bit = 1; bit < bits; ++bit) nonzero |= planes[bit] = Isa::top_bits_of_bytes(bytes, 8 - bit);
  planes[0] = Isa::top_bits_of_bytes(bytes, 0) & nonzero;
}

template <class Isa>
void quantize(const DrawKeys& keys, uint32_t block, const float* g, const float* factors, float limit, int bits,
              uint32_t* planes, uint32_t* undecided) {
  using Words = Vector<uint32_t, Isa::kWidth>;
  using Floats = Vector<float, Isa::kWidth>;
  using Integers = Vector<int32_t, Isa::kWidth>;
  uint32_t words[4][kGroup], codes[kGroup];
  draw<Isa>(keys, block, words);
  const auto most = reinterpret_cast<Integers>(Floats{} + limit);
  const bool narrow = bits <= 8;
  const int sign_shift = narrow ? 24 : 0;
  for (int group = 0; group < kChunk / kGroup; ++group, planes += bits) {
    const float* const x = g + group * kGroup;
    const int shift = group % 2 * 16;
    const auto sum_of = [&](int i) {
      const auto magnitude = reinterpret_cast<Floats>(load<Words>(x + i) & 0x7fffffffu);
      auto scaled = reinterpret_cast<Integers>(magnitude * load<Floats>(factors + group * kGroup + i));
      scaled = scaled < most ? scaled : most;  // non-negative floats compare as integers by their bits; NaN is largest
      const auto whole = reinterpret_cast<Words>(__builtin_convertvector(reinterpret_cast<Floats>(scaled), Integers));
      return whole + (load<Words>(words[group / 2] + i) >> shift & 0xffffu);
    };
    // An element is undecided if the lower half of its sum has all bits set. That is rare.
    Integers fullest = Integers{} + INT32_MIN;
#pragma GCC unroll 8
    for (int i = 0; i < kGroup; i += Isa::kWidth) {
      const Words sum = sum_of(i);
      const auto lower = reinterpret_cast<Integers>(sum | 0xffff0000u);
      fullest = fullest > lower ? fullest : lower;
      store(codes + i, sum >> 16 | (load<Words>(x + i) & 0x80000000u) >> sign_shift);
    }
    undecided[group] = 0;
    if (Isa::top_bits(reinterpret_cast<Words>(fullest == -1)) != 0) [[unlikely]]
      for (int i = 0; i < kGroup; i += Isa::kWidth)
        undecided[group] |= Isa::top_bits(reinterpret_cast<Words>((sum_of(i) & 0xffffu) == 0xffffu)) << i;
    if (narrow)
      split_bytes<Isa>(codes, bits, planes);
    else
      split<Isa>(codes, bits, planes);
  }
}

/// kBits is the number of bits, or 0 to use `bits`.
template <class Isa, int kBits>
inline void dequantize_add_bits(const uint32_t* planes, int bits, const float* units, float* y) {
  using Words = Vector<uint32_t, Isa::kWidth>;
  using Floats = Vector<float, Isa::kWidth>;
  using Integers = Vector<int32_t, Isa::kWidth>;
  if constexpr (kBits != 0 && requires { Isa::template levels<kBits>(planes); }) {
    alignas(kGroup) int8_t levels[kGroup];
    store(levels, Isa::template levels<kBits>(planes));
#pragma GCC unroll 8
    for (int i = 0; i < kGroup; i += Isa::kWidth)
      store(y + i, load<Floats>(y + i) +
                       __builtin_convertvector(Isa::widen_levels(levels + i), Floats) * load<Floats>(units + i));
    return;
  }
  const int end = kBits == 0 ? bits : kBits;
  Words lane;
  for (int i = 0; i < Isa::kWidth; ++i) lane[i] = static_cast<uint32_t>(i);
#pragma GCC unroll 8
  for (int i = 0; i < kGroup; i += Isa::kWidth, lane += Isa::kWidth) {
    Words level = planes[1] >> lane & 1u;
#pragma GCC unroll 16
    for (int bit = 2; bit < end; ++bit) level |= (planes[bit] >> lane & 1u) << (bit - 1);
    const Floats value = __builtin_convertvector(reinterpret_cast<Integers>(level), Floats) * load<Floats>(units + i);
    const Words sign = planes[0] >> lane << 31;
    store(y + i, load<Floats>(y + i) + reinterpret_cast<Floats>(reinterpret_cast<Words>(value) ^ sign));
  }
}

template <class Isa>
void dequantize_add(const uint32_t* planes, int bits, const float* units, float* y) {
  if (bits == 2) return dequantize_add_bits<Isa, 2>(planes, bits, units, y);
  if (bits == 4) return dequantize_add_bits<Isa, 4>(planes, bits, units, y);
  dequantize_add_bits<Isa, 0>(planes, bits, units, y);
}

template <class Isa>
void at_least(const uint32_t* magnitudes, int64_t count, uint32_t least, uint32_t* masks) {
  using Words = Vector<uint32_t, Isa::kWidth>;
  for (int64_t group = 0; group < count / kGroup; ++group) {
    uint32_t below = 0;
#pragma GCC unroll 8
    for (int i = 0; i < kGroup; i += Isa::kWidth)
      below |= Isa::top_bits(load<Words>(magnitudes + group * kGroup + i) - least) << i;
    masks[group] = ~below;
  }
}

template <class Isa>
int64_t places_at_least(const uint32_t* magnitudes, int64_t count, uint32_t least, uint32_t* places, uint32_t* chosen) {
  using Words = Vector<uint32_t, Isa::kWidth>;
  int64_t found = 0;
  if constexpr (requires { Isa::compress(Words{}, Words{}); }) {
    Words lane;
    for (int i = 0; i < Isa::kWidth; ++i) lane[i] = static_cast<uint32_t>(i);
    for (int64_t first = 0; first < count; first += Isa::kWidth) {
      const Words word = load<Words>(magnitudes + first), below = word - least;
      store(places + found, Isa::compress(lane + static_cast<uint32_t>(first), below));
      store(chosen + found, Isa::compress(word, below));
      found += Isa::kWidth - __builtin_popcount(Isa::top_bits(below));
    }
    return found;
  }
  for (int64_t first = 0; first < count; first += kGroup) {
    uint32_t mask;
    at_least<Isa>(magnitudes + first, kGroup, least, &mask);
    for (; mask != 0; mask &= mask - 1, ++found) {
      places[found] = static_cast<uint32_t>(first) + static_cast<uint32_t>(__builtin_ctz(mask));
      chosen[found] = magnitudes[places[found]];
    }
  }
  return found;
}

/// Calls `row` with each kRow values of x. The last row ends with zeros if `count` is no multiple of kRow.
template <int kRow, class Row>
inline void for_each_row(const float* x, int64_t count, const Row& row) {
  for (int64_t rows = count / kRow; rows > 0; --rows, x += kRow) row(x);
  if (count % kRow == 0) return;
  float rest[kRow] = {};
  __builtin_memcpy(rest, x, static_cast<std::size_t>(count % kRow) * sizeof(float));
  row(rest);
}

template <class Isa>
float largest(const float* x, int64_t count) {
  using Integers = Vector<int32_t, Isa::kWidth>;
  Integers top[kGroup / Isa::kWidth] = {};  // bits of magnitudes compare as integers
  for_each_row<kGroup>(x, count, [&](const float* row) {
#pragma GCC unroll 8
    for (int i = 0; i < kGroup; i += Isa::kWidth) {
      Integers& most = top[i / Isa::kWidth];
      const Integers magnitude = load<Integers>(row + i) & 0x7fffffff;
      most = most > magnitude ? most : magnitude;
    }
  });
  return __builtin_bit_cast(float, fold(top, [](const auto& a, const auto& b) { return a > b ? a : b; }));
}

template <class Isa>
void statistics(const float* x, int64_t count, double& largest, double& sum, double& squares) {
  constexpr int kHalf = Isa::kWidth / 2, kHalves = kLanes / kHalf, kWholes = kLanes / Isa::kWidth;
  using Doubles = Vector<double, kHalf>;
  using Integers = Vector<int32_t, Isa::kWidth>;
  Integers top[kWholes] = {};  // bits of magnitudes compare as integers
  Doubles sums[kHalves] = {}, products[kHalves] = {};
  for_each_row<kLanes>(x, count, [&](const float* row) {
#pragma GCC unroll 4
    for (int v = 0; v < kWholes; ++v) {
      const Integers magnitude = load<Integers>(row + v * Isa::kWidth) & 0x7fffffff;
      top[v] = top[v] > magnitude ? top[v] : magnitude;
    }
#pragma GCC unroll 8
    for (int v = 0; v < kHalves; ++v) {
      const Doubles wide = Isa::widen(row + v * kHalf);
      sums[v] += wide;
      products[v] = Isa::add_exact_product(wide, wide, products[v]);
    }
  });
  const auto larger = [](const auto& a, const auto& b) { return a > b ? a : b; };
  const auto total = [](const auto& a, const auto& b) { return a + b; };
  largest = static_cast<double>(__builtin_bit_cast(float, fold(top, larger)));
  sum = fold(sums, total);
  squares = fold(products, total);
}

/// Sweeps the row twice, for the lower and the upper half of each 32 elements: all sums then fit into registers.
template <class Isa>
void sign_sums(const float* x, int64_t count, double& sum, double& magnitudes, int64_t& negatives) {
  constexpr int kHalf = Isa::kWidth / 2, kHalves = kLanes / kHalf, kWholes = kLanes / Isa::kWidth;
  using Doubles = Vector<double, kHalf>;
  using Bits = Vector<uint64_t, kHalf>;
  using Floats = Vector<float, Isa::kWidth>;
  using Integers = Vector<int32_t, Isa::kWidth>;
  const int64_t rows = count / kGroup;
  float rest[kGroup] = {};
  __builtin_memcpy(rest, x + rows * kGroup, static_cast<std::size_t>(count % kGroup) * sizeof(float));
  Doubles all_sums[kHalves] = {}, all_sizes[kHalves] = {};
  Integers below[kWholes] = {};
  for (int half = 0; half < kGroup; half += kLanes) {
    Doubles sums[kHalves] = {}, sizes[kHalves] = {};
    const auto row = [&](const float* values) {
#pragma GCC unroll 4
      for (int v = 0; v < kWholes; ++v) below[v] += load<Floats>(values + v * Isa::kWidth) < 0.0f;
#pragma GCC unroll 8
      for (int v = 0; v < kHalves; ++v) {
        const auto wide = reinterpret_cast<Doubles>(Isa::widen(values + v * kHalf));
        sums[v] += wide;
        sizes[v] += reinterpret_cast<Doubles>(reinterpret_cast<Bits>(wide) & ~(uint64_t{1} << 63));
      }
    };
    for (int64_t i = 0; i < rows; ++i) row(x + i * kGroup + half);
    row(rest + half);
    for (int v = 0; v < kHalves; ++v) {
      all_sums[v] += sums[v];
      all_sizes[v] += sizes[v];
    }
  }
  const auto total = [](const auto& a, const auto& b) { return a + b; };
  sum = fold(all_sums, total);
  magnitudes = fold(all_sizes, total);
  negatives = -int64_t{fold(below, total)};
}

template <class Isa>
constexpr CodecLoops make_codec_loops() {
  return {.quantize = quantize<Isa>,
          .dequantize_add = dequantize_add<Isa>,
          .at_least = at_least<Isa>,
          .places_at_least = places_at_least<Isa>,
          .largest = largest<Isa>,
          .statistics = statistics<Isa>,
          .sign_sums = sign_sums<Isa>,
          .rotate = rotate<Isa>,
          .nearest_levels = nearest_levels<Isa>,
          .add_levels = add_levels<Isa>};
}

}  // namespace
}  // namespace tern::cpu::simd
