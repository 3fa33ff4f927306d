#pragma once

#include <span>

#include "tern/kernels/codec.h"
#include "tern/kernels/kernel.h"

// The elements of largest magnitude of a gradient; of equal magnitudes, the first ones. NaN and infinities are the
// largest. The code of a tensor is the places of these elements (u32, ascending), then their values (f32),
// little-endian. One call handles all gradients of a message. Gradients are f32, row-major, with fewer than 2^32
// elements. Every target gives the same bits.

namespace tern::kernels {

/// A gradient of a message, and its code.
struct TopKGradient {
  Tensor g;
  int64_t kept;  ///< elements: at least 1, unless g has none
  Tensor codes;  ///< u8 [topk_bytes]
};
/// A gradient in the messages of several ranks.
struct TopKSum {
  Tensor sum;
  int64_t kept;
  int64_t codes_at;  ///< offset in bytes of its code in each message
};
inline const Tensor& placement(std::span<const TopKGradient> message) {
  return placement_of(message, &TopKGradient::g);
}
inline const Tensor& placement(std::span<const TopKSum> message) { return placement_of(message, &TopKSum::sum); }

constexpr int64_t topk_bytes(int64_t kept) { return 8 * kept; }

/// codes = the code of g, for each gradient.
inline constinit Kernel<void(std::span<const TopKGradient>)> topk_encode{"topk_encode"};

/// sum += factor · the elements that a message holds, one message after another, in f32 without fused multiply-add.
/// messages: u8 [messages, bytes]. A message is wrong if a place is not in the tensor or does not rise, or if a value
/// is not finite. The CPU throws then; other devices leave out places that are not in the tensor and check nothing
/// else, because the sender checked its message.
inline constinit Kernel<void(std::span<const TopKSum>, const Tensor& messages, float factor)> topk_decode_add{
    "topk_decode_add"};

/// sum += factor · the elements of one code, on the CPU. Throws if the code is wrong, before it changes the sum.
void topk_add(const uint8_t* code, int64_t kept, float factor, std::span<float> sum);

/// These throw an error that names the operation if the arguments do not fit each other.
void check_topk_encode(std::span<const TopKGradient> message);
void check_topk_decode(std::span<const TopKSum> message, const Tensor& messages);

}  // namespace tern::kernels
