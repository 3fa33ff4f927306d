#pragma once

#include "tern/core/tensor.h"

namespace tern::cuda {

/// y[m, n] = op(a)[m, k] · op(b)[k, n], row-major, for each of `matrices` that stand `step` elements apart (those of y:
/// m·n).
struct Product {
  int64_t m, n, k;
  int64_t matrices = 1;
  int64_t a_step = 0, b_step = 0;
  bool transpose_a = false, transpose_b = false;

  friend bool operator==(const Product&, const Product&) = default;
};

/// Runs a product on cuBLASLt, summed in f32. a and b share a dtype, f32 (tf32 where the device's LibraryRules say so)
/// or bf16; y is of it, or f32. `bias` [n], of y's dtype, is added to every row where it is defined (k above 0).
/// An error names `operation`.
void multiply(const char* operation, const Product& product, const Tensor& a, const Tensor& b, const Tensor& y,
              const Tensor& bias = {});

}  // namespace tern::cuda
