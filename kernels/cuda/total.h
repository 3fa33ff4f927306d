#pragma once

#include "tern/core/tensor.h"

namespace tern::cuda {

/// result [one element, f32 or f64] = scale · Σ x, in one launch of one block: for partial results, f32 or f64.
void total(const char* operation, const Tensor& x, double scale, const Tensor& result);

}  // namespace tern::cuda
