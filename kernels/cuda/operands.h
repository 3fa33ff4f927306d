#pragma once

#include <cstdint>

#include "tern/core/tensor.h"

// Helpers of products and convolutions around the calls of vendor libraries.

namespace tern::cuda {

/// The largest power of two, at most `most`, that divides the tensor's address. `most` is a power of two.
inline uint32_t alignment_of(const Tensor& tensor, uint32_t most) {
  uint32_t alignment = most;
  while (reinterpret_cast<uintptr_t>(tensor.raw_data()) % alignment != 0) alignment /= 2;
  return alignment;
}

/// y = y + bias[C] of each channel (0 if undefined), then max(·, 0) if `relu`. NaN stays NaN.
void add_bias(const char* operation, const Tensor& bias, bool relu, Tensor& y);

/// sums [C], f32: the sums of x [N, C] or [N, C, H, W] over all dimensions except C. Does nothing if `sums` is
/// undefined.
void channel_sums(const char* operation, const Tensor& x, Tensor& sums);

/// y [N, C', H, W] = the first channels of x [N, C, H, W], and zeros behind those of x. Both are f32 or bf16.
void fit_channels(const char* operation, const Tensor& x, const Tensor& y);

}  // namespace tern::cuda
