#pragma once

#include "tern/core/tensor.h"

namespace tern::cpu {

/// y = x in y's dtype; same shape and format; fast between f32 and bf16.
void convert_elements(const Tensor& x, const Tensor& y);

/// x itself where it is f32, else a converted copy.
Tensor as_f32(const Tensor& x);

/// Calls `compute(out)` with `y` itself where it is f32, else with an f32 buffer that is then converted into y.
template <class Compute>
void write_as_f32(const Tensor& y, Compute compute) {
  if (y.dtype() == DType::f32) return compute(y);
  const Tensor buffer = Tensor::empty(y.shape(), {.dtype = DType::f32, .format = y.format()});
  compute(buffer);
  convert_elements(buffer, y);
}

}  // namespace tern::cpu
