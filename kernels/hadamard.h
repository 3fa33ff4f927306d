#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "tern/core/random.h"
#include "tern/kernels/kernel.h"

// Gradients in the code of EDEN (Vargaftik et al., arXiv 2108.08842); with one bit it is DRIVE (arXiv 2105.08339). A
// bucket x of d elements is rotated: r = HDx/√d, with the Hadamard matrix H and random signs D. Its elements are then
// nearly normal, so that the Lloyd-Max levels of the normal distribution fit them. If c are the levels nearest to
// r√d/‖r‖, the bucket decodes as DH(Sc)/√d, with S = ‖r‖² / ⟨r, c⟩. That is unbiased as d grows.
//
// Buckets have 4096 elements. A shorter last bucket is padded with zeros to the next power of two. The code of a tensor
// is the 64-bit seed of the signs; then for each bucket S/√d (f32); then for each bucket its codes, as one plane of
// bits after the other: the signs, then the index of the level, the highest bit first. Little-endian, and the lowest
// bit of a byte is the first element's. Gradients are f32, row-major. Every target gives the same bits, unless a value
// is NaN.

namespace tern::kernels {

inline constexpr int64_t kHadamardBucket = 4096;
inline constexpr int kMostHadamardBits = 4;

constexpr int64_t hadamard_buckets(int64_t n) { return (n + kHadamardBucket - 1) / kHadamardBucket; }

/// Where the parts of a bucket are: its elements in the tensor, and its bytes in the tensor's code.
struct HadamardBucket {
  int64_t first, count;         ///< elements
  int64_t padded;               ///< d
  int64_t plane_bytes;          ///< of one plane
  int64_t scale_at, planes_at;  ///< bytes

  /// Bucket b of a tensor with n elements.
  constexpr HadamardBucket(int64_t n, int bits, int64_t b)
      : first(b * kHadamardBucket),
        count(n - first < kHadamardBucket ? n - first : kHadamardBucket),
        padded(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)))),
        plane_bytes((padded + 7) / 8),
        scale_at(8 + 4 * b),
        planes_at(8 + 4 * hadamard_buckets(n) + b * bits * (kHadamardBucket / 8)) {}
};

/// Bytes of the code of n elements.
constexpr int64_t hadamard_bytes(int64_t n, int bits) {
  if (n == 0) return 0;
  const HadamardBucket last(n, bits, hadamard_buckets(n) - 1);
  return last.planes_at + bits * last.plane_bytes;
}

/// codes [u8, hadamard_bytes(n, bits)] = the code of g, with a seed that `key` draws. The scale of a bucket with NaN or
/// infinite elements is NaN. A bucket with a norm below 2^-110 counts as zero. `bits` is 1 to 4.
inline constinit Kernel<void(const Tensor& g, const RandomKey& key, int bits, Tensor& codes)> hadamard_encode{
    "hadamard_encode"};

/// sum [f32, row-major] += each message, one after another, in f32 without fused multiply-add. messages: u8 [messages,
/// bytes]. In each message, the code begins at byte `codes_at`.
inline constinit Kernel<void(const Tensor& messages, int64_t codes_at, int bits, Tensor& sum)> hadamard_decode_add{
    "hadamard_decode_add"};

/// mean [f32, row-major] = the sum of the messages, as `hadamard_decode_add` adds them to zeros, times 1 / messages.
inline constinit Kernel<void(const Tensor& messages, int64_t codes_at, int bits, Tensor& mean)> hadamard_mean{
    "hadamard_mean"};

/// These throw an error that names the operation if the arguments do not fit each other.
void check_hadamard_encode(const Tensor& g, int bits, const Tensor& codes);
void check_hadamard_decode(const char* operation, const Tensor& messages, int64_t codes_at, int bits,
                           const Tensor& total);

/// The positive Lloyd-Max levels of the standard normal distribution: each is the mean of its cell (Max, 1960).
constexpr std::array<float, 8> normal_levels(int bits) {
  constexpr std::array<std::array<float, 8>, kMostHadamardBits> kLevels = {
      {{0.797884583f},
       {0.452780038f, 1.51041758f},
       {0.24509418f, 0.756005287f, 1.34390926f, 2.15194559f},
       {0.128395036f, 0.388048291f, 0.656759143f, 0.942340434f, 1.25623119f, 1.6180464f, 2.06901717f, 2.73258948f}}};
  return kLevels[static_cast<size_t>(bits - 1)];
}
constexpr int normal_level_count(int bits) { return 1 << (bits - 1); }
/// The border between level i and level i + 1: the middle.
constexpr float normal_border(const std::array<float, 8>& levels, int i) {
  return (levels[static_cast<size_t>(i)] + levels[static_cast<size_t>(i) + 1]) / 2;
}

}  // namespace tern::kernels
