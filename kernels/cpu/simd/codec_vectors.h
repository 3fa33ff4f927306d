#pragma once

#include "tern/kernels/cpu/simd/kernels.h"
#include "tern/kernels/cpu/simd/vector.h"

// What the loops of all codecs use. vector.h says what this file may contain.

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

/// Operations of an instruction set that need no special instruction. Bits of a bucket are words: element i has bit
/// i % 32 of word i / 32.
template <int kLanesOfVector>
struct VectorOperations {
  static constexpr int kWidth = kLanesOfVector;
  using Words = Vector<uint32_t, kWidth>;
  using Floats = Vector<float, kWidth>;
  using Mask = Vector<int32_t, kWidth>;  // all bits of a lane are equal, or `choose` needs only the top bit

  /// a · b + c, for a product that is exact. So it may be fused.
  template <class V>
  static V add_exact_product(const V& a, const V& b, const V& c) {
    return a * b + c;
  }
  static Mask greater(const Floats& a, const Floats& b) { return a > b; }
  static Floats choose(const Mask& mask, const Floats& a, const Floats& b) { return mask ? a : b; }
  /// The bits of vector n, each in the top bit of its lane.
  static Words signs(const uint32_t* words, int64_t n) {
    Words lane;
    for (int k = 0; k < kWidth; ++k) lane[k] = static_cast<uint32_t>(k);
    const auto element = static_cast<uint64_t>(n) * kWidth;
    return (Words{} + words[element / 32]) >> (lane + static_cast<uint32_t>(element % 32)) << 31;
  }
  static Mask mask(const uint32_t* words, int64_t n) { return reinterpret_cast<Mask>(signs(words, n)) < 0; }
  /// v, with the signs changed whose bits of vector n are set.
  static Floats flip(const Floats& v, const uint32_t* words, int64_t n) {
    return reinterpret_cast<Floats>(reinterpret_cast<Words>(v) ^ signs(words, n));
  }
};

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

}  // namespace
}  // namespace tern::cpu::simd
