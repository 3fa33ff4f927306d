#pragma once

#include "tern/kernels/convolution.h"

// Winograd's convolutions (Lavin and Gray, 2015): with 36 products for 16 outputs of a 3x3 kernel, 4 of a 5x5, instead
// of 144 and 100. f32; images channels-last, weights OIHW; stride, dilation and groups 1, padding below the kernel's
// extent, at least a vector of channels on both sides. The rounding error is some ten times that of direct sums, and a
// NaN or an infinity spreads over the tile it lies in.

namespace tern::cpu {

/// Whether these functions can compute a convolution with weights of this shape.
bool winograd_applies(const Shape& w, const kernels::ConvGeometry& geometry);

void winograd_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const kernels::ConvGeometry&, bool relu,
                      Tensor& y);
void winograd_backward_data(const Tensor& dy, const Tensor& w, const kernels::ConvGeometry&, Tensor& dx);
void winograd_backward_weights(const Tensor& dy, const Tensor& x, const kernels::ConvGeometry&, Tensor& dw);

}  // namespace tern::cpu
