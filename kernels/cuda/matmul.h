#pragma once

#include "tern/kernels/matmul.h"

namespace tern::cuda {

void matmul(const Tensor& a, const Tensor& b, const kernels::MatmulOptions& options, Tensor& y);
void linear(const Tensor& x, const Tensor& w, const Tensor& bias, bool relu, Tensor& y);
void linear_backward_data(const Tensor& dy, const Tensor& w, Tensor& dx);
void linear_backward_weights(const Tensor& dy, const Tensor& x, Tensor& dw, Tensor& db);

}  // namespace tern::cuda
