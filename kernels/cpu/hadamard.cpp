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

static_assert(simd::kMostHadamard == kHadamardBucket);

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
    const float* const next = g + place.first + place.padded * 3 / 2;  // what `rotate` leaves with AVX-512
    const double product = loops.nearest_levels(x, place.padded, levels.data(), bits, planes, next);
    const float scale = hadamard_scale(norm, product);
    std::memcpy(codes + place.scale_at, &scale, sizeof scale);
    std::memcpy(codes + place.planes_at, planes, static_cast<size_t>(bits * place.plane_bytes));
  }

  /// to = factor · (from + the bucket). `from` is `to`, or null for zeros. Both are of the whole tensor.
  void add(const uint8_t* codes, const HadamardBucket& place, int64_t b, const float* from, float factor,
           float* to) const {
    to += place.first;
    if (from != nullptr) from += place.first;
    if (is_tiny(place)) return add_tiny(codes, place, b, from, factor, to);
    uint32_t planes[kMostWords];
    std::memcpy(planes, codes + place.planes_at, static_cast<size_t>(bits * place.plane_bytes));
    float scale;
    std::memcpy(&scale, codes + place.scale_at, sizeof scale);
    simd::CodedBucket bucket = {planes, place.padded, levels.data(), bits, scale, from, factor, to};
    const auto add_levels = simd::kernels().codec->add_levels;
    if (place.count == place.padded) return add_levels(keys, hadamard_block(b, 0), bucket);
    alignas(64) float part[kHadamardBucket] = {};
    if (from != nullptr) std::copy_n(from, place.count, part);
    bucket.from = bucket.to = part;
    add_levels(keys, hadamard_block(b, 0), bucket);
    std::copy_n(part, place.count, to);
  }

  void add_tiny(const uint8_t* codes, HadamardBucket place, int64_t b, const float* from, float factor,
                float* to) const {
    float x[kHadamardBucket];
    if (from == nullptr) std::fill_n(to, place.count, 0.0f);
    place.first = 0;
    hadamard_add_bucket(codes, place, b, stream, bits, to, x);
    for (int64_t i = 0; i < place.count; ++i) to[i] *= factor;
  }

  RandomStream stream;
  simd::DrawKeys keys;
  int bits;
  std::array<float, 8> levels = normal_levels(bits);
};

void hadamard_encode(const Tensor& g, const RandomKey& key, int bits, Tensor& codes) {
  check_hadamard_encode(g, bits, codes);
  if (g.numel() == 0) return;
  const uint64_t seed = drawn_seed(key);
  auto* const bytes = codes.data<uint8_t>();
  std::memcpy(bytes, &seed, sizeof seed);
  const Buckets buckets(seed, bits);
  parallel_for(0, hadamard_buckets(g.numel()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) buckets.encode(g.data<float>(), {g.numel(), bits, b}, b, bytes);
  });
}

/// y = factor · (y + the messages), or factor · the messages.
void add_messages(const char* operation, const Tensor& messages, int64_t codes_at, int bits, bool to_zeros,
                  float factor, Tensor& y) {
  check_hadamard_decode(operation, messages, codes_at, bits, y);
  if (y.numel() == 0) return;
  std::vector<Buckets> all;
  const uint8_t* const first = messages.data<uint8_t>() + codes_at;
  for (int64_t message = 0; message < messages.size(0); ++message) {
    uint64_t seed = 0;
    std::memcpy(&seed, first + message * messages.size(1), sizeof seed);
    all.emplace_back(seed, bits);
  }
  float* const to = y.data<float>();
  parallel_for(0, hadamard_buckets(y.numel()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      for (size_t message = 0; message < all.size(); ++message)
        all[message].add(first + static_cast<int64_t>(message) * messages.size(1), {y.numel(), bits, b}, b,
                         to_zeros && message == 0 ? nullptr : to, message + 1 == all.size() ? factor : 1, to);
  });
}

void hadamard_decode_add(const Tensor& messages, int64_t codes_at, int bits, Tensor& sum) {
  add_messages("hadamard_decode_add", messages, codes_at, bits, false, 1, sum);
}

void hadamard_mean(const Tensor& messages, int64_t codes_at, int bits, Tensor& mean) {
  add_messages("hadamard_mean", messages, codes_at, bits, true, hadamard_mean_factor(messages.size(0)), mean);
}

}  // namespace

void provide_hadamard() {
  kernels::hadamard_encode.provide(Target::cpu, hadamard_encode);
  kernels::hadamard_decode_add.provide(Target::cpu, hadamard_decode_add);
  kernels::hadamard_mean.provide(Target::cpu, hadamard_mean);
}

}  // namespace tern::cpu
