#pragma once

#include "tern/kernels/convolution.h"

// Convolutions of any geometry as matrix products whose left factor is read from the image where it lies: a row of the
// kernel meets contiguous channels-last pixels. f32; images channels-last, weights OIHW.

namespace tern::cpu {

void direct_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const kernels::ConvGeometry&, bool relu,
                    Tensor& y);
void direct_backward_data(const Tensor& dy, const Tensor& w, const kernels::ConvGeometry&, Tensor& dx);
void direct_backward_weights(const Tensor& dy, const Tensor& x, const kernels::ConvGeometry&, Tensor& dw);

}  // namespace tern::cpu
