#pragma once

#include "tern/kernels/kernel.h"

namespace tern::kernels {

/// y = scale · sum of x over every dimension in which y has extent 1 and x has more. y has the rank and dtype of x and
/// is row-major. Parts of a sum are added in f32, or in f64 for f64, and then their sums in f64.
inline constinit Kernel<void(const Tensor& x, double scale, Tensor& y)> sum{"sum"};

/// dx = 0 if y <= 0; otherwise dy, also if y is NaN. dx may be dy. sums [C] = the sums of dx [N, C] or [N, C, H, W]
/// over all other dimensions, in the dtype of parameters.
inline constinit Kernel<void(const Tensor& y, const Tensor& dy, Tensor& dx, Tensor& sums)> relu_backward_sums{
    "relu_backward_sums"};

/// y = scale·x, repeated along every dimension in which x has extent 1. The ranks are equal.
inline constinit Kernel<void(const Tensor& x, double scale, Tensor& y)> broadcast_to{"broadcast_to"};

// Over the rows of a matrix x [R, C], C >= 1, row-major.

/// y[r] = the greatest (the least) element of row r. NaN if the row has one.
inline constinit Kernel<void(const Tensor& x, Tensor& y)> row_max{"row_max"};
inline constinit Kernel<void(const Tensor& x, Tensor& y)> row_min{"row_min"};
/// y[r] = the column of the first greatest element of row r. NaN counts as the greatest. y: i64 [R].
inline constinit Kernel<void(const Tensor& x, Tensor& y)> row_argmax{"row_argmax"};
/// y[r] = log Σ exp(x[r, :])
inline constinit Kernel<void(const Tensor& x, Tensor& y)> row_logsumexp{"row_logsumexp"};

/// Throws an error that names `operation` unless x is [R, C] with C >= 1, and y is [R] of `dtype`.
void check_rows(const char* operation, const Tensor& x, const Tensor& y, DType dtype);

}  // namespace tern::kernels
