#pragma once

#include "tern/kernels/elementwise.h"
#include "tern/kernels/matmul.h"

// The kernels with narrow factors of matmul.h, each step by a kernel of its own.

namespace tern::kernels {

template <Target kTarget>
void add_then_project(const Tensor& x, const Tensor& y, const Tensor& q, Tensor& m, Tensor& p) {
  add.on(kTarget)(x, y, m);
  matmul.on(kTarget)(m, q, {}, p);
}

template <Target kTarget>
void multiply_then_subtract(const Tensor& p, const Tensor& q, const Tensor& m, Tensor& y, Tensor& rest) {
  matmul.on(kTarget)(p, q, {.transpose_b = true}, y);
  subtract.on(kTarget)(m, y, rest);
}

}  // namespace tern::kernels
