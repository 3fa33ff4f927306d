#pragma once

#include "tern/kernels/elementwise.h"
#include "tern/kernels/reduction.h"

namespace tern::kernels {

/// relu_backward_sums, each step by a kernel of its own.
template <Target kTarget>
void mask_then_sum(const Tensor& y, const Tensor& dy, Tensor& dx, Tensor& sums) {
  relu_backward.on(kTarget)(y, dy, dx);
  Shape channels = dx.shape();
  for (int d = 0; d < dx.rank(); ++d)
    if (d != 1) channels[d] = 1;
  Tensor of_channels = sums.reshape(channels);
  sum.on(kTarget)(dx.to(sums.dtype()), 1, of_channels);
}

}  // namespace tern::kernels
