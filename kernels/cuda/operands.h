#pragma once

#include <cstdint>

#include "tern/core/tensor.h"

// What products and convolutions do around the calls of vendor libraries.

namespace tern::cuda {

/// The largest power of two, at most `most`, that the tensor's address is a multiple of.
inline uint32_t alignment_of(const Tensor& tensor, uint32_t most) {
  uint32_t alignment = most;
  while (reinterpret_cast<uintptr_t>(tensor.raw_data()) % alignment != 0) alignment /= 2;
  return alignment;
}

/// y = y + bias[C] of each channel (undefined: 0), then max(·, 0) if `relu`, NaN staying NaN.
void add_bias(const char* operation, const Tensor& bias, bool relu, Tensor& y);

/// sums [C], f32: of x [N, C] or [N, C, H, W] over all but the channels; undefined: nothing to do.
void channel_sums(const char* operation, const Tensor& x, Tensor& sums);

}  // namespace tern::cuda
