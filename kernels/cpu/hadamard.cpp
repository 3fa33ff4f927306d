#include "tern/kernels/hadamard.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "tern/core/parallel.h"
#include "tern/kernels/cpu/draw_keys.h"
#include "tern/kernels/cpu/simd/kernels.h"
#include "tern/kernels/hadamard_arithmetic.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

using namespace tern::kernels;

constexpr int64_t kMostWords = kMostHadamardBits * kHadamardBucket / 32;
/// A shorter bucket, the last of a tensor, fills no group of the loops.
bool is_tiny(const HadamardBucket& place) { return place.padded < simd::kGroup; }

/// The codes of one tensor, and how its buckets are coded.
struct Buckets {
  Buckets(uint64_t seed, int width) : stream(hadamard_stream(seed)), keys(draw_keys(stream)), bits(width) {}

  void encode(const float* g, const HadamardBucket& place, int64_t b, uint8_t* codes) const {
    alignas(64) float x[kHadamardBucket];
    if (is_tiny(place)) return hadamard_encode_bucket(g, place, b, stream, bits, codes, x);
    const simd::CodecLoops& loops = *simd::kernels().codec;
    const float* from = g + place.first;
    double largest = 0, sum = 0, squares = 0;
    loops.statistics(from, place.count, largest, sum, squares);
    const double norm = std::sqrt(squares);
    if (place.count < place.padded) {
      std::copy_n(from, place.count, x);
      std::fill(x + place.count, x + place.padded, 0.0f);
      from = x;
    }
    loops.rotate(keys, hadamard_block(b, 0), from, hadamard_factor(norm), place.padded, x);
    uint32_t planes[kMostWords];
    const float scale = hadamard_scale(norm, loops.nearest_levels(x, place.padded, levels.data(), bits, planes));
    std::memcpy(codes + place.scale_at, &scale, sizeof scale);
    std::memcpy(codes + place.planes_at, planes, static_cast<size_t>(bits * place.plane_bytes));
  }

  void add(const uint8_t* codes, const HadamardBucket& place, int64_t b, float* y) const {
    alignas(64) float x[kHadamardBucket];
    if (is_tiny(place)) return hadamard_add_bucket(codes, place, b, stream, bits, y, x);
    const simd::CodecLoops& loops = *simd::kernels().codec;
    uint32_t planes[kMostWords];
    std::memcpy(planes, codes + place.planes_at, static_cast<size_t>(bits * place.plane_bytes));
    loops.rotate_levels(planes, place.padded, levels.data(), bits, x);
    float scale;
    std::memcpy(&scale, codes + place.scale_at, sizeof scale);
    float* const to = y + place.first;
    if (place.count == place.padded) return loops.add_signed(keys, hadamard_block(b, 0), x, scale, place.padded, to);
    alignas(64) float part[kHadamardBucket] = {};
    std::copy_n(to, place.count, part);
    loops.add_signed(keys, hadamard_block(b, 0), x, scale, place.padded, part);
    std::copy_n(part, place.count, to);
  }

  RandomStream stream;
  simd::DrawKeys keys;
  int bits;
  std::array<float, 8> levels = normal_levels(bits);
};

void hadamard_encode(const Tensor& g, const RandomKey& key, int bits, Tensor& codes) {
  check_hadamard_encode(g, bits, codes);
  if (g.numel() == 0) return;
  const uint64_t seed = hadamard_seed(key);
  auto* const bytes = codes.data<uint8_t>();
  std::memcpy(bytes, &seed, sizeof seed);
  const Buckets buckets(seed, bits);
  parallel_for(0, hadamard_buckets(g.numel()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) buckets.encode(g.data<float>(), {g.numel(), bits, b}, b, bytes);
  });
}

void hadamard_decode_add(const Tensor& messages, int64_t codes_at, int bits, Tensor& sum) {
  check_hadamard_decode(messages, codes_at, bits, sum);
  if (sum.numel() == 0) return;
  std::vector<Buckets> all;
  const uint8_t* const first = messages.data<uint8_t>() + codes_at;
  for (int64_t message = 0; message < messages.size(0); ++message) {
    uint64_t seed = 0;
    std::memcpy(&seed, first + message * messages.size(1), sizeof seed);
    all.emplace_back(seed, bits);
  }
  float* const y = sum.data<float>();
  parallel_for(0, hadamard_buckets(sum.numel()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      for (size_t message = 0; message < all.size(); ++message)
        all[message].add(first + static_cast<int64_t>(message) * messages.size(1), {sum.numel(), bits, b}, b, y);
  });
}

}  // namespace

void provide_hadamard() {
  kernels::hadamard_encode.provide(Target::cpu, hadamard_encode);
  kernels::hadamard_decode_add.provide(Target::cpu, hadamard_decode_add);
}

}  // namespace tern::cpu
