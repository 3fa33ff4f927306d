#pragma once

#include "tern/kernels/convolution.h"

namespace tern::cuda {

void conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const kernels::ConvGeometry& geometry, bool relu,
            Tensor& y);
void conv2d_backward_data(const Tensor& dy, const Tensor& w, const kernels::ConvGeometry& geometry, Tensor& dx);
void conv2d_backward_weights(const Tensor& dy, const Tensor& x, const kernels::ConvGeometry& geometry, Tensor& dw,
                             Tensor& db);

}  // namespace tern::cuda
