#pragma once

#include "tern/core/tensor.h"

namespace tern::cuda {

void sum(const Tensor& x, double scale, Tensor& y);

/// sums [C], f32: of x [N, C] or [N, C, H, W] over all but the channels; undefined: nothing to do.
void channel_sums(const char* operation, const Tensor& x, Tensor& sums);

}  // namespace tern::cuda
