#pragma once

#include "tern/kernels/pooling.h"

namespace tern::cuda {

void max_pool2d(const Tensor& x, const kernels::PoolGeometry& geometry, Tensor& y, Tensor& where);
void max_pool2d_backward(const Tensor& dy, const Tensor& where, const kernels::PoolGeometry& geometry, Tensor& dx);
void average_pool2d(const Tensor& x, const kernels::PoolGeometry& geometry, Tensor& y);
void average_pool2d_backward(const Tensor& dy, const kernels::PoolGeometry& geometry, Tensor& dx);

}  // namespace tern::cuda
