#pragma once

#include "tern/kernels/cpu/simd/kernels.h"
#include "tern/kernels/cpu/simd/vector.h"

// The codecs' loops of one instruction set. vector.h says what this file may contain. The including file defines `Isa`,
// a type with kWidth, `top_bits` (the top bit of each lane), `pack` (32 lanes with values below 256 to bytes),
// `top_bits_of_bytes`, `widen` (half a vector of floats to doubles) and `multiply` (the products of the lower halves of
// 64-bit lanes).

namespace tern::cpu::simd {
namespace {

template <class V>
inline V load(const void* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <class V>
inline void store(void* to, const V& v) {
  __builtin_memcpy(to, &v, sizeof v);
}

/// One round of Philox over blocks in 64-bit lanes. The upper halves of the lanes hold remains of products, which are
/// not read.
template <class Isa, class Wide>
inline void philox_round(Wide (&w)[4], uint32_t key0, uint32_t key1) {
  const Wide product0 = Isa::multiply(w[0], Wide{} + 0xD2511F53u), product1 = Isa::multiply(w[2], Wide{} + 0xCD9E8D57u);
  w[0] = (product1 >> 32) ^ (w[1] ^ key0);
  w[1] = product1;
  w[2] = (product0 >> 32) ^ (w[3] ^ key1);
  w[3] = product0;
}

/// words[q][i] = word q of block `block` + i. Even and odd blocks alternate, so that neither waits for its own
/// products.
template <class Isa>
inline void draw(const DrawKeys& keys, uint32_t block, uint32_t (&words)[4][kGroup]) {
  using Wide = Vector<uint64_t, Isa::kWidth / 2>;
  Wide lane;
  for (int i = 0; i < Isa::kWidth / 2; ++i) lane[i] = static_cast<uint64_t>(2 * i);
  for (int begin = 0; begin < kGroup; begin += Isa::kWidth) {
    const Wide first = lane + (block + static_cast<uint32_t>(begin));
    const Wide tail[3] = {Wide{} + keys.counter[0], Wide{} + keys.counter[1], Wide{} + keys.counter[2]};
    Wide even[4] = {first, tail[0], tail[1], tail[2]}, odd[4] = {first + 1, tail[0], tail[1], tail[2]};
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      philox_round<Isa>(even, keys.key[round][0], keys.key[round][1]);
      philox_round<Isa>(odd, keys.key[round][0], keys.key[round][1]);
    }
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) store(words[q] + begin, (even[q] & 0xffffffffu) | odd[q] << 32);
  }
}

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
    const float* x = g + group * kGroup;
    const int shift = group % 2 * 16;
    uint32_t ties = 0;
#pragma GCC unroll 8
    for (int i = 0; i < kGroup; i += Isa::kWidth) {
      const auto magnitude = reinterpret_cast<Floats>(load<Words>(x + i) & 0x7fffffffu);
      auto scaled = reinterpret_cast<Integers>(magnitude * load<Floats>(factors + group * kGroup + i));
      scaled = scaled < most ? scaled : most;  // non-negative floats compare as integers by their bits; NaN is largest
      const auto whole = reinterpret_cast<Words>(__builtin_convertvector(reinterpret_cast<Floats>(scaled), Integers));
      const Words sum = whole + (load<Words>(words[group / 2] + i) >> shift & 0xffffu);
      ties |= Isa::top_bits(reinterpret_cast<Words>((sum & 0xffffu) == 0xffffu)) << i;
      store(codes + i, sum >> 16 | (load<Words>(x + i) & 0x80000000u) >> sign_shift);
    }
    undecided[group] = ties;
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

/// Combines lanes in halves with `join`: first whole vectors, then the lanes of the last one.
template <class V, int kCount, class Join>
inline auto fold(V (&lanes)[kCount], Join join) {
#pragma GCC unroll 3
  for (int half = kCount / 2; half > 0; half /= 2)
#pragma GCC unroll 4
    for (int i = 0; i < half; ++i) lanes[i] = join(lanes[i], lanes[i + half]);
  V last = lanes[0];
#pragma GCC unroll 4
  for (int half = static_cast<int>(sizeof(V) / sizeof(last[0])) / 2; half > 0; half /= 2)
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) last[i] = join(last[i], last[i + half]);
  return last[0];
}

template <class Isa>
void statistics(const float* x, int64_t count, double& largest, double& sum, double& squares) {
  constexpr int kHalf = Isa::kWidth / 2, kHalves = kLanes / kHalf, kWholes = kLanes / Isa::kWidth;
  using Doubles = Vector<double, kHalf>;
  using Integers = Vector<int32_t, Isa::kWidth>;
  Integers top[kWholes] = {};  // bits of magnitudes compare as integers
  Doubles sums[kHalves] = {}, products[kHalves] = {};
  const auto row = [&](const float* values) {
#pragma GCC unroll 4
    for (int v = 0; v < kWholes; ++v) {
      const Integers magnitude = load<Integers>(values + v * Isa::kWidth) & 0x7fffffff;
      top[v] = top[v] > magnitude ? top[v] : magnitude;
    }
#pragma GCC unroll 8
    for (int v = 0; v < kHalves; ++v) {
      const Doubles wide = Isa::widen(values + v * kHalf);
      sums[v] += wide;
      products[v] += wide * wide;
    }
  };
  int64_t rows = count / kLanes;
  for (; rows > 0; --rows, x += kLanes) row(x);
  if (count % kLanes != 0) {
    float rest[kLanes] = {};
    __builtin_memcpy(rest, x, static_cast<std::size_t>(count % kLanes) * sizeof(float));
    row(rest);
  }
  const auto larger = [](const auto& a, const auto& b) { return a > b ? a : b; };
  const auto total = [](const auto& a, const auto& b) { return a + b; };
  largest = static_cast<double>(__builtin_bit_cast(float, fold(top, larger)));
  sum = fold(sums, total);
  squares = fold(products, total);
}

/// The lanes of v, each in the place of the lane whose number differs in bit kStride.
template <int kStride, class V>
inline V swapped(const V& v) {
  constexpr int kWidth = sizeof(V) / sizeof(float), s = kStride;
  if constexpr (kWidth == 4)
    return __builtin_shufflevector(v, v, 0 ^ s, 1 ^ s, 2 ^ s, 3 ^ s);
  else if constexpr (kWidth == 8)
    return __builtin_shufflevector(v, v, 0 ^ s, 1 ^ s, 2 ^ s, 3 ^ s, 4 ^ s, 5 ^ s, 6 ^ s, 7 ^ s);
  else
    return __builtin_shufflevector(v, v, 0 ^ s, 1 ^ s, 2 ^ s, 3 ^ s, 4 ^ s, 5 ^ s, 6 ^ s, 7 ^ s, 8 ^ s, 9 ^ s, 10 ^ s,
                                   11 ^ s, 12 ^ s, 13 ^ s, 14 ^ s, 15 ^ s);
}

/// One stage of the transform between the lanes of a vector: a + b in the lower lane of each pair, a - b in the upper.
template <int kStride, class Isa>
inline Vector<float, Isa::kWidth> butterfly(const Vector<float, Isa::kWidth>& v) {
  using Words = Vector<uint32_t, Isa::kWidth>;
  Words upper;
  for (int i = 0; i < Isa::kWidth; ++i) upper[i] = (i & kStride) != 0 ? 0x80000000u : 0;
  return swapped<kStride>(v) + reinterpret_cast<Vector<float, Isa::kWidth>>(reinterpret_cast<Words>(v) ^ upper);
}
template <class Isa>
inline Vector<float, Isa::kWidth> transform_lanes(Vector<float, Isa::kWidth> v) {
  v = butterfly<2, Isa>(butterfly<1, Isa>(v));
  if constexpr (Isa::kWidth > 4) v = butterfly<4, Isa>(v);
  if constexpr (Isa::kWidth > 8) v = butterfly<8, Isa>(v);
  return v;
}
/// The other stages of the transform, two at a time.
template <class Isa>
inline void transform_vectors(float* x, int64_t count) {
  using Floats = Vector<float, Isa::kWidth>;
  int64_t half = Isa::kWidth;
  for (; 4 * half <= count; half *= 4)
    for (int64_t first = 0; first < count; first += 4 * half)
      for (int64_t i = first; i < first + half; i += Isa::kWidth) {
        const Floats a = load<Floats>(x + i), b = load<Floats>(x + i + half), c = load<Floats>(x + i + 2 * half),
                     d = load<Floats>(x + i + 3 * half);
        const Floats sum = a + b, difference = a - b, next_sum = c + d, next_difference = c - d;
        store(x + i, sum + next_sum);
        store(x + i + half, difference + next_difference);
        store(x + i + 2 * half, sum - next_sum);
        store(x + i + 3 * half, difference - next_difference);
      }
  if (half == count) return;
  for (int64_t i = 0; i < half; i += Isa::kWidth) {
    const Floats a = load<Floats>(x + i), b = load<Floats>(x + i + half);
    store(x + i, a + b);
    store(x + i + half, a - b);
  }
}

/// Calls body(i, signs) for each vector i of a bucket. `signs` are the random sign bits of its elements.
template <class Isa, class Body>
inline void for_each_sign(const DrawKeys& keys, uint32_t block, int64_t count, Body body) {
  using Words = Vector<uint32_t, Isa::kWidth>;
  uint32_t words[4][kGroup];
  draw<Isa>(keys, block, words);
  Words lane;
  for (int i = 0; i < Isa::kWidth; ++i) lane[i] = static_cast<uint32_t>(i);
  for (int64_t group = 0; group < count / kGroup; ++group) {
    const uint32_t word = words[group % 4][group / 4];
#pragma GCC unroll 8
    for (int i = 0; i < kGroup; i += Isa::kWidth)
      body(group * kGroup + i, (Words{} + word) >> (lane + static_cast<uint32_t>(i)) << 31);
  }
}

template <class Isa>
void rotate(const DrawKeys& keys, uint32_t block, const float* from, float factor, int64_t count, float* to) {
  using Words = Vector<uint32_t, Isa::kWidth>;
  using Floats = Vector<float, Isa::kWidth>;
  for_each_sign<Isa>(keys, block, count, [&](int64_t i, const Words& signs) {
    const Floats scaled = load<Floats>(from + i) * factor;
    store(to + i, transform_lanes<Isa>(reinterpret_cast<Floats>(reinterpret_cast<Words>(scaled) ^ signs)));
  });
  transform_vectors<Isa>(to, count);
}

template <class Isa>
void add_signed(const DrawKeys& keys, uint32_t block, const float* x, float scale, int64_t count, float* sum) {
  using Words = Vector<uint32_t, Isa::kWidth>;
  using Floats = Vector<float, Isa::kWidth>;
  for_each_sign<Isa>(keys, block, count, [&](int64_t i, const Words& signs) {
    const auto value = reinterpret_cast<Floats>(load<Words>(x + i) ^ signs);
    store(sum + i, load<Floats>(sum + i) + value * scale);
  });
}

template <class Isa, int kBits>
inline double nearest_levels_bits(const float* x, int64_t count, const float* levels, uint32_t* planes) {
  constexpr int kLevels = 1 << (kBits - 1), kHalf = Isa::kWidth / 2, kHalves = kLanes / kHalf;
  using Words = Vector<uint32_t, Isa::kWidth>;
  using Floats = Vector<float, Isa::kWidth>;
  Vector<double, kHalf> sums[kHalves] = {};
  for (int64_t group = 0; group < count / kGroup; ++group) {
    uint32_t plane[kBits] = {};
    float nearest[kGroup];
    const float* const from = x + group * kGroup;
#pragma GCC unroll 8
    for (int i = 0; i < kGroup; i += Isa::kWidth) {
      const Words word = load<Words>(from + i);
      const auto magnitude = reinterpret_cast<Floats>(word & 0x7fffffffu);
      Words index = {};
      Floats level = Floats{} + levels[0];
#pragma GCC unroll 8
      for (int k = 1; k < kLevels; ++k) {
        const auto beyond = magnitude > Floats{} + (levels[k - 1] + levels[k]) / 2;
        index -= reinterpret_cast<Words>(beyond);
        level = beyond ? Floats{} + levels[k] : level;
      }
      store(nearest + i, reinterpret_cast<Words>(level) | (word & 0x80000000u));
      plane[0] |= Isa::top_bits(word) << i;
#pragma GCC unroll 4
      for (int p = 1; p < kBits; ++p) plane[p] |= Isa::top_bits(index << (32 - kBits + p)) << i;
    }
#pragma GCC unroll 8
    for (int v = 0; v < kGroup / kHalf; ++v)
      sums[v % kHalves] += Isa::widen(from + v * kHalf) * Isa::widen(nearest + v * kHalf);
#pragma GCC unroll 4
    for (int p = 0; p < kBits; ++p) planes[p * (count / kGroup) + group] = plane[p];
  }
  return fold(sums, [](const auto& a, const auto& b) { return a + b; });
}
template <class Isa>
double nearest_levels(const float* x, int64_t count, const float* levels, int bits, uint32_t* planes) {
  if (bits == 1) return nearest_levels_bits<Isa, 1>(x, count, levels, planes);
  if (bits == 2) return nearest_levels_bits<Isa, 2>(x, count, levels, planes);
  if (bits == 3) return nearest_levels_bits<Isa, 3>(x, count, levels, planes);
  return nearest_levels_bits<Isa, 4>(x, count, levels, planes);
}

/// The level whose index has these bits, the highest in planes[1].
template <int kBits, class Words, class Floats>
inline Floats pick_level(const Words (&planes)[kBits], const float* levels) {
  constexpr int kLevels = 1 << (kBits - 1);
  Floats left[kLevels];
  for (int k = 0; k < kLevels; ++k) left[k] = Floats{} + levels[k];
#pragma GCC unroll 4
  for (int p = kBits - 1; p > 0; --p)
#pragma GCC unroll 4
    for (int k = 0; k < 1 << (p - 1); ++k) left[k] = planes[p] != 0 ? left[2 * k + 1] : left[2 * k];
  return left[0];
}

template <class Isa, int kBits>
inline void rotate_levels_bits(const uint32_t* planes, int64_t count, const float* levels, float* x) {
  using Words = Vector<uint32_t, Isa::kWidth>;
  using Floats = Vector<float, Isa::kWidth>;
  Words lane;
  for (int i = 0; i < Isa::kWidth; ++i) lane[i] = static_cast<uint32_t>(i);
  for (int64_t group = 0; group < count / kGroup; ++group)
#pragma GCC unroll 8
    for (int i = 0; i < kGroup; i += Isa::kWidth) {
      Words bit[kBits];
#pragma GCC unroll 4
      for (int p = 0; p < kBits; ++p) {
        const Words word = Words{} + planes[p * (count / kGroup) + group];
        bit[p] = word >> (lane + static_cast<uint32_t>(i)) & 1u;
      }
      const auto level = pick_level<kBits, Words, Floats>(bit, levels);
      const auto value = reinterpret_cast<Floats>(reinterpret_cast<Words>(level) | bit[0] << 31);
      store(x + group * kGroup + i, transform_lanes<Isa>(value));
    }
  transform_vectors<Isa>(x, count);
}
template <class Isa>
void rotate_levels(const uint32_t* planes, int64_t count, const float* levels, int bits, float* x) {
  if (bits == 1) return rotate_levels_bits<Isa, 1>(planes, count, levels, x);
  if (bits == 2) return rotate_levels_bits<Isa, 2>(planes, count, levels, x);
  if (bits == 3) return rotate_levels_bits<Isa, 3>(planes, count, levels, x);
  rotate_levels_bits<Isa, 4>(planes, count, levels, x);
}

template <class Isa>
constexpr CodecLoops make_codec_loops() {
  return {.quantize = quantize<Isa>,
          .dequantize_add = dequantize_add<Isa>,
          .at_least = at_least<Isa>,
          .statistics = statistics<Isa>,
          .rotate = rotate<Isa>,
          .nearest_levels = nearest_levels<Isa>,
          .rotate_levels = rotate_levels<Isa>,
          .add_signed = add_signed<Isa>};
}

}  // namespace
}  // namespace tern::cpu::simd
