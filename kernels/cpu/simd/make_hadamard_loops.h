#pragma once

#include "tern/kernels/cpu/simd/codec_vectors.h"

// The loops of the Hadamard code, of one instruction set. vector.h says what this file may contain. Besides what
// make_codec_loops.h asks for, `Isa` has kRadix: the number of vectors that a pass of the transform keeps in registers.
// Its order of additions is that of `hadamard_transform`.

namespace tern::cpu::simd {
namespace {

/// The random sign bits of the elements of a bucket: element i has bit i % 32 of word i / 32.
struct Signs {
  static constexpr int64_t kWords = kMostHadamard / 32;
  template <class Isa>
  static Signs draw_for(const DrawKeys& keys, uint32_t block) {
    uint32_t drawn[4][kGroup];
    draw<Isa>(keys, block, drawn);
    Signs signs;
    for (int i = 0; i < kGroup; ++i)
      for (int q = 0; q < 4; ++q) signs.words[4 * i + q] = drawn[q][i];
    return signs;
  }

  uint32_t words[kWords];
};

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
  Vector<float, Isa::kWidth> signs;
  for (int i = 0; i < Isa::kWidth; ++i) signs[i] = (i & kStride) != 0 ? -1.0f : 1.0f;
  return Isa::add_exact_product(v, signs, swapped<kStride>(v));
}
template <class Isa>
inline Vector<float, Isa::kWidth> transform_lanes(Vector<float, Isa::kWidth> v) {
  v = butterfly<2, Isa>(butterfly<1, Isa>(v));
  if constexpr (Isa::kWidth > 4) v = butterfly<4, Isa>(v);
  if constexpr (Isa::kWidth > 8) v = butterfly<8, Isa>(v);
  return v;
}

/// The stages between vectors whose numbers differ in the bits from kHalf on.
template <int kHalf, int kVectors, class Floats>
inline void transform_registers(Floats (&v)[kVectors]) {
  if constexpr (kHalf < kVectors) {
#pragma GCC unroll 8
    for (int pair = 0; pair < kVectors / 2; ++pair) {
      const int i = pair / kHalf * 2 * kHalf + pair % kHalf;
      const Floats a = v[i], b = v[i + kHalf];
      v[i] = a + b;
      v[i + kHalf] = a - b;
    }
    transform_registers<2 * kHalf>(v);
  }
}

/// Prefetches memory. Each pass over a bucket prefetches 1 / kParts of its size, line by line: a processor waits if it
/// is asked for many lines at once.
template <bool kWrites, int kPartsOfBucket>
struct Prefetch {
  static constexpr int kParts = kPartsOfBucket, kLine = 64 / sizeof(float);
  void line() {
    __builtin_prefetch(next, kWrites ? 1 : 0, 2);
    next += kLine;
  }
  const float* next;
};

/// The stages between vectors from kStride vectors on, as many as fit into kVectors registers. Vector n comes from
/// load(n) and goes to store(n, vector).
template <class Isa, int kStride, int kVectors = Isa::kRadix, class Load, class Store, class Lines>
inline void transform_pass(int64_t vectors, Load load, Store store, Lines& prefetch) {
  constexpr bool kFits = kVectors * kStride * Isa::kWidth <= kMostHadamard;
  if constexpr (kVectors > 1)
    if (!kFits || vectors / kStride < kVectors)
      return transform_pass<Isa, kStride, kVectors / 2>(vectors, load, store, prefetch);
  const int64_t run = kVectors > 1 || vectors > kStride ? kStride : vectors;  // there may be no stage left
  if constexpr (kFits)
    for (int64_t first = 0; first < vectors; first += kVectors * kStride)
      for (int64_t n = first; n < first + run; ++n) {
        Vector<float, Isa::kWidth> v[kVectors];
#pragma GCC unroll 16
        for (int k = 0; k < kVectors; ++k) {
          v[k] = load(n + k * kStride);
          if (k % (Lines::kParts * Lines::kLine / Isa::kWidth) == 0) prefetch.line();
        }
        transform_registers<1>(v);
#pragma GCC unroll 16
        for (int k = 0; k < kVectors; ++k) store(n + k * kStride, v[k]);
      }
}

/// The stages of `transform` from kStride vectors on.
template <class Isa, int kStride, class Store, class Lines>
inline void transform_rest(int64_t vectors, float* x, Store finish, Lines& prefetch) {
  using Floats = Vector<float, Isa::kWidth>;
  constexpr int kNext = kStride * Isa::kRadix;
  const auto read = [=](int64_t n) { return load<Floats>(x + n * Isa::kWidth); };
  if constexpr (kNext * Isa::kWidth < kMostHadamard)
    if (kNext < vectors) {
      transform_pass<Isa, kStride>(
          vectors, read, [=](int64_t n, const Floats& v) { store(x + n * Isa::kWidth, v); }, prefetch);
      return transform_rest<Isa, kNext>(vectors, x, finish, prefetch);
    }
  transform_pass<Isa, kStride>(vectors, read, finish, prefetch);
}

/// Transforms a bucket. Vector n comes from load(n), and goes to finish(n, vector). x: room for the bucket.
template <class Isa, class Load, class Store, class Lines>
inline void transform(int64_t count, float* x, Load load, Store finish, Lines prefetch) {
  using Floats = Vector<float, Isa::kWidth>;
  const int64_t vectors = count / Isa::kWidth;
  transform_pass<Isa, 1>(
      vectors, [=](int64_t n) { return transform_lanes<Isa>(load(n)); },
      [=](int64_t n, const Floats& v) { store(x + n * Isa::kWidth, v); }, prefetch);
  transform_rest<Isa, Isa::kRadix>(vectors, x, finish, prefetch);
}

template <class Isa>
void rotate(const DrawKeys& keys, uint32_t block, const float* from, float factor, int64_t count, float* to) {
  using Floats = Vector<float, Isa::kWidth>;
  const Signs signs = Signs::draw_for<Isa>(keys, block);
  const uint32_t* const words = signs.words;
  transform<Isa>(
      count, to, [=](int64_t n) { return Isa::flip(load<Floats>(from + n * Isa::kWidth) * factor, words, n); },
      [=](int64_t n, const Floats& v) { store(to + n * Isa::kWidth, v); }, Prefetch<false, 4>{from + count});
}

template <class Isa, int kBits>
inline double nearest_levels_bits(const float* x, int64_t count, const float* levels, uint32_t* planes,
                                  const float* next) {
  constexpr int kLevels = 1 << (kBits - 1), kHalf = Isa::kWidth / 2, kHalves = kLanes / kHalf;
  using Words = Vector<uint32_t, Isa::kWidth>;
  using Floats = Vector<float, Isa::kWidth>;
  Vector<double, kHalf> sums[kHalves] = {};
  Prefetch<false, 2> prefetch{next};
  for (int64_t group = 0; group < count / kGroup; ++group) {
    uint32_t plane[kBits] = {};
    float nearest[kGroup];
    const float* const from = x + group * kGroup;
    prefetch.line();
#pragma GCC unroll 8
    for (int i = 0; i < kGroup; i += Isa::kWidth) {
      const Words word = load<Words>(from + i);
      const auto magnitude = reinterpret_cast<Floats>(word & 0x7fffffffu);
      Floats level = Floats{} + levels[0];
#pragma GCC unroll 8
      for (int k = 1; k < kLevels; ++k) {
        const auto beyond = Isa::greater(magnitude, Floats{} + (levels[k - 1] + levels[k]) / 2);
        level = Isa::choose(beyond, Floats{} + levels[k], level);
        // The levels below are beyond too, so that each bit of the index changes at the multiples of its value.
#pragma GCC unroll 4
        for (int p = 1; p < kBits; ++p)
          if (k % (1 << (kBits - 1 - p)) == 0) plane[p] ^= Isa::bits(beyond) << i;
      }
      store(nearest + i, reinterpret_cast<Words>(level) | (word & 0x80000000u));
      plane[0] |= Isa::top_bits(word) << i;
    }
#pragma GCC unroll 8
    for (int v = 0; v < kGroup / kHalf; ++v)
      sums[v % kHalves] =
          Isa::add_exact_product(Isa::widen(from + v * kHalf), Isa::widen(nearest + v * kHalf), sums[v % kHalves]);
#pragma GCC unroll 4
    for (int p = 0; p < kBits; ++p) planes[p * (count / kGroup) + group] = plane[p];
  }
  return fold(sums, [](const auto& a, const auto& b) { return a + b; });
}
template <class Isa>
double nearest_levels(const float* x, int64_t count, const float* levels, int bits, uint32_t* planes,
                      const float* next) {
  if (bits == 1) return nearest_levels_bits<Isa, 1>(x, count, levels, planes, next);
  if (bits == 2) return nearest_levels_bits<Isa, 2>(x, count, levels, planes, next);
  if (bits == 3) return nearest_levels_bits<Isa, 3>(x, count, levels, planes, next);
  return nearest_levels_bits<Isa, 4>(x, count, levels, planes, next);
}

/// The level of each lane of vector n. Bit p of its index has the value 2^(kBits - 1 - p), and lies in plane p.
template <class Isa, int kBits>
inline Vector<float, Isa::kWidth> pick_level(const uint32_t* planes, int64_t words, const float* levels, int64_t n) {
  using Floats = Vector<float, Isa::kWidth>;
  constexpr int kLevels = 1 << (kBits - 1);
  Floats left[kLevels];
#pragma GCC unroll 8
  for (int k = 0; k < kLevels; ++k) left[k] = Floats{} + levels[k];
#pragma GCC unroll 4
  for (int p = kBits - 1; p > 0; --p) {
    const auto bit = Isa::mask(planes + p * words, n);
#pragma GCC unroll 4
    for (int k = 0; k < 1 << (p - 1); ++k) left[k] = Isa::choose(bit, left[2 * k + 1], left[2 * k]);
  }
  return Isa::flip(left[0], planes, n);
}

template <class Isa, int kBits>
inline void add_levels_bits(const DrawKeys& keys, uint32_t block, const CodedBucket& bucket) {
  using Floats = Vector<float, Isa::kWidth>;
  const Signs signs = Signs::draw_for<Isa>(keys, block);
  const uint32_t *const words = signs.words, *const planes = bucket.planes;
  const int64_t count = bucket.count;
  const float* const levels = bucket.levels;
  const float scale = bucket.scale, factor = bucket.factor;
  const float* const from = bucket.from;
  float* const to = bucket.to;
  alignas(64) float x[kMostHadamard];
  transform<Isa>(
      count, x, [=](int64_t n) { return pick_level<Isa, kBits>(planes, count / kGroup, levels, n); },
      [=](int64_t n, const Floats& v) {
        const Floats before = from == nullptr ? Floats{} : load<Floats>(from + n * Isa::kWidth);
        store(to + n * Isa::kWidth, (before + Isa::flip(v, words, n) * scale) * factor);
      },
      Prefetch<true, 2>{to + count});
}
template <class Isa>
void add_levels(const DrawKeys& keys, uint32_t block, const CodedBucket& bucket) {
  if (bucket.bits == 1) return add_levels_bits<Isa, 1>(keys, block, bucket);
  if (bucket.bits == 2) return add_levels_bits<Isa, 2>(keys, block, bucket);
  if (bucket.bits == 3) return add_levels_bits<Isa, 3>(keys, block, bucket);
  add_levels_bits<Isa, 4>(keys, block, bucket);
}

}  // namespace
}  // namespace tern::cpu::simd
