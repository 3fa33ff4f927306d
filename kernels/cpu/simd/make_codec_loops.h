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

template <class Isa>
constexpr CodecLoops make_codec_loops() {
  return {.quantize = quantize<Isa>, .dequantize_add = dequantize_add<Isa>, .statistics = statistics<Isa>};
}

}  // namespace
}  // namespace tern::cpu::simd
