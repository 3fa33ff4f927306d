#pragma once

#include <span>

#include "tern/core/random.h"
#include "tern/kernels/codec.h"
#include "tern/kernels/kernel.h"

// Elements of a gradient that are drawn at random; every set of them is equally likely (Floyd's algorithm: J. Bentley,
// CACM 30(9), 1987). The code of a tensor is the 64-bit seed of the draw, then for each drawn element, in the order of
// the tensor, its value times n / kept (f32), little-endian. One call handles all gradients of a message. Gradients are
// f32, row-major, with fewer than 2^32 elements. Every target gives the same bits, unless a value is NaN.

namespace tern::kernels {

/// A gradient of a message, and its code.
struct RandKGradient {
  Tensor g;
  RandomKey key;  ///< of the seed
  int64_t kept;   ///< elements: at least 1, unless g has none
  Tensor codes;   ///< u8 [randk_bytes]
};
/// A gradient in the messages of several ranks.
struct RandKSum {
  Tensor sum;
  int64_t kept;
  int64_t codes_at;  ///< offset in bytes of its code in each message
};
inline const Tensor& placement(std::span<const RandKGradient> message) {
  return placement_of(message, &RandKGradient::g);
}
inline const Tensor& placement(std::span<const RandKSum> message) { return placement_of(message, &RandKSum::sum); }

constexpr int64_t randk_bytes(int64_t kept) { return kept == 0 ? 0 : 8 + 4 * kept; }
constexpr double randk_scale(int64_t n, int64_t kept) { return static_cast<double>(n) / static_cast<double>(kept); }

/// codes = the code of g, for each gradient.
inline constinit Kernel<void(std::span<const RandKGradient>)> randk_encode{"randk_encode"};

/// sum += the values that a message holds, one message after another. messages: u8 [messages, bytes]. The CPU throws if
/// a value is not finite; other devices do not check this, because the sender did.
inline constinit Kernel<void(std::span<const RandKSum>, const Tensor& messages)> randk_decode_add{"randk_decode_add"};

/// The random numbers of a message with this seed.
constexpr RandomStream randk_stream(uint64_t seed) { return RandomStream({.seed = seed, .purpose = Purpose::codec}); }
/// Floyd's algorithm takes one step for each `last` from n - kept to n - 1. A step draws an element from 0 to `last`,
/// and takes it, or `last` if an earlier step has taken it.
constexpr uint32_t randk_draw(const RandomStream& stream, uint32_t last) { return stream.below(last, last + 1); }

/// These throw an error that names the operation if the arguments do not fit each other.
void check_randk_encode(std::span<const RandKGradient> message);
void check_randk_decode(std::span<const RandKSum> message, const Tensor& messages);

}  // namespace tern::kernels
