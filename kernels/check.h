#pragma once

#include "tern/core/tensor.h"

namespace tern::kernels {

/// An error that names `operation` and both tensors unless a and b share shape, dtype and format.
void check_alike(const char* operation, const Tensor& a, const Tensor& b);

}  // namespace tern::kernels
