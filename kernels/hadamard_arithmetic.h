#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "tern/core/random.h"
#include "tern/kernels/codec_arithmetic.h"
#include "tern/kernels/hadamard.h"

// The arithmetic of one bucket of the Hadamard code. Every target repeats it operation by operation. Without
// contraction to fused multiply-add it gives the same bits everywhere.

namespace tern::kernels {

/// The signs of a message with this `drawn_seed`.
constexpr RandomStream hadamard_stream(uint64_t seed) {
  return RandomStream({.seed = seed, .purpose = Purpose::codec});
}

/// Number of elements whose signs come from one block of random words: element i of the 128 has bit i % 32 of word
/// i / 32.
inline constexpr int64_t kSignsPerBlock = 128;
constexpr uint32_t hadamard_block(int64_t bucket, int64_t element) {
  return static_cast<uint32_t>(bucket * (kHadamardBucket / kSignsPerBlock) + element / kSignsPerBlock);
}
/// The factor ±1 of an element, as a sign bit for its floats.
constexpr uint32_t hadamard_sign(const RandomStream& stream, int64_t bucket, int64_t element) {
  const auto words = stream.block(hadamard_block(bucket, element));
  return words[static_cast<size_t>(element % kSignsPerBlock / 32)] >> (element % 32) << 31;
}
constexpr float with_sign(float value, uint32_t sign) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) ^ sign);
}

/// Sums over a bucket have `kStatisticsLanes` interleaved parts, which are then added in halves.
template <class Value>
double hadamard_sum(int64_t count, Value value) {
  double lanes[kStatisticsLanes] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i % kStatisticsLanes] += value(i);
  for (int half = kStatisticsLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

/// The factor that makes a bucket with this norm a unit vector.
constexpr float hadamard_factor(double norm) {
  return norm < double{kSmallestUnit} ? 0.0f : static_cast<float>(1 / norm);
}
/// S/√d. `product` is ⟨HDx/‖x‖, c⟩.
constexpr float hadamard_scale(double norm, double product) {
  return norm < double{kSmallestUnit} ? 0.0f : static_cast<float>(norm / product);
}

/// What `hadamard_mean` multiplies a sum with.
constexpr float hadamard_mean_factor(int64_t messages) {
  return static_cast<float>(1.0 / static_cast<double>(messages));
}

/// x ← Hx for the Hadamard matrix H of ±1 with `count` rows, a power of two.
inline void hadamard_transform(float* x, int64_t count) {
  for (int64_t half = 1; half < count; half *= 2)
    for (int64_t first = 0; first < count; first += 2 * half)
      for (int64_t i = first; i < first + half; ++i) {
        const float a = x[i], b = x[i + half];
        x[i] = a + b;
        x[i + half] = a - b;
      }
}

/// The code of an element of HDx/‖x‖: the sign in the highest of `bits` bits, then the index of the nearest level.
constexpr uint32_t hadamard_code(float x, const std::array<float, 8>& levels, int bits) {
  const float magnitude = with_sign(x, std::bit_cast<uint32_t>(x) & 0x80000000u);
  uint32_t index = 0;
  for (int i = 0; i + 1 < normal_level_count(bits); ++i) index += magnitude > normal_border(levels, i) ? 1u : 0u;
  return std::bit_cast<uint32_t>(x) >> 31 << (bits - 1) | index;
}
constexpr float hadamard_level(uint32_t code, const std::array<float, 8>& levels, int bits) {
  const uint32_t sign = code >> (bits - 1);
  return with_sign(levels[code & (normal_level_count(bits) - 1u)], sign << 31);
}

/// Encodes bucket b with plain loops. g: the tensor. codes: its code. x: room for the bucket.
inline void hadamard_encode_bucket(const float* g, const HadamardBucket& place, int64_t b, const RandomStream& stream,
                                   int bits, uint8_t* codes, float* x) {
  const auto levels = normal_levels(bits);
  g += place.first;
  const double norm = std::sqrt(hadamard_sum(place.count, [&](int64_t i) { return double{g[i]} * g[i]; }));
  const float factor = hadamard_factor(norm);
  for (int64_t i = 0; i < place.padded; ++i)
    x[i] = with_sign((i < place.count ? g[i] : 0.0f) * factor, hadamard_sign(stream, b, i));
  hadamard_transform(x, place.padded);
  const auto code = [&](int64_t i) { return hadamard_code(x[i], levels, bits); };
  const double product =
      hadamard_sum(place.padded, [&](int64_t i) { return double{x[i]} * hadamard_level(code(i), levels, bits); });
  const float scale = hadamard_scale(norm, product);
  std::memcpy(codes + place.scale_at, &scale, sizeof scale);
  for (int plane = 0; plane < bits; ++plane)
    for (int64_t byte = 0; byte < place.plane_bytes; ++byte) {
      uint32_t eight = 0;
      for (int64_t i = 8 * byte; i < std::min(8 * byte + 8, place.padded); ++i)
        eight |= (code(i) >> (bits - 1 - plane) & 1u) << (i % 8);
      codes[place.planes_at + plane * place.plane_bytes + byte] = static_cast<uint8_t>(eight);
    }
}

/// Adds bucket b with plain loops.
inline void hadamard_add_bucket(const uint8_t* codes, const HadamardBucket& place, int64_t b,
                                const RandomStream& stream, int bits, float* sum, float* x) {
  const auto levels = normal_levels(bits);
  const uint8_t* const planes = codes + place.planes_at;
  for (int64_t i = 0; i < place.padded; ++i) {
    uint32_t code = 0;
    for (int plane = 0; plane < bits; ++plane)
      code = code << 1 | (planes[plane * place.plane_bytes + i / 8] >> (i % 8) & 1u);
    x[i] = hadamard_level(code, levels, bits);
  }
  hadamard_transform(x, place.padded);
  float scale;
  std::memcpy(&scale, codes + place.scale_at, sizeof scale);
  sum += place.first;
  for (int64_t i = 0; i < place.count; ++i) sum[i] += scale * with_sign(x[i], hadamard_sign(stream, b, i));
}

}  // namespace tern::kernels
