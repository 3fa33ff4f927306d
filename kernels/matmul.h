#pragma once

#include "tern/kernels/kernel.h"
#include "tern/kernels/options.h"

namespace tern::kernels {

/// Returns [..., m, n]. Throws an error that names both shapes if they do not fit.
Shape matmul_output_shape(const Shape& a, const Shape& b, const MatmulOptions& options);
/// Returns [n, out] for x [n, in] and w [out, in]. Throws an error that names both shapes if they do not fit.
Shape linear_output_shape(const Shape& x, const Shape& w);

/// y[..., m, n] = op(a)[..., m, k] · op(b)[..., k, n]. Ranks 2 to 4, row-major. The leading dimensions of a and b are
/// equal, or b has rank 2 and is used for every matrix of a.
inline constinit Kernel<void(const Tensor& a, const Tensor& b, const MatmulOptions&, Tensor& y)> matmul{"matmul"};

// PowerSGD's passes over a large matrix m [rows, columns], with factors p [rows, k] and q [columns, k]. Row-major.

/// The most columns of a factor with which the bits of these passes, and of mᵀ · p in f32, do not depend on the number
/// of threads of a CPU. A wider one is worth a product of a library.
inline constexpr int64_t kNarrowFactor = 8;

/// m = x + y, p = m · q
inline constinit Kernel<void(const Tensor& x, const Tensor& y, const Tensor& q, Tensor& m, Tensor& p)> add_and_project{
    "add_and_project"};
/// y = p · qᵀ, rest = m - y. `rest` may be m.
inline constinit Kernel<void(const Tensor& p, const Tensor& q, const Tensor& m, Tensor& y, Tensor& rest)>
    subtract_product{"subtract_product"};

/// y[n, out] = x[n, in] · w[out, in]ᵀ + bias[out], then max(·, 0) if `relu`. `bias` may be undefined. x and y are f32,
/// f64 or bf16. w and bias have `parameter_dtype` of that dtype.
inline constinit Kernel<void(const Tensor& x, const Tensor& w, const Tensor& bias, bool relu, Tensor& y)> linear{
    "linear"};
/// dx = dy · w
inline constinit Kernel<void(const Tensor& dy, const Tensor& w, Tensor& dx)> linear_backward_data{
    "linear_backward_data"};
/// dw = dyᵀ · x, db = column sums of dy. db may be undefined.
inline constinit Kernel<void(const Tensor& dy, const Tensor& x, Tensor& dw, Tensor& db)> linear_backward_weights{
    "linear_backward_weights"};

}  // namespace tern::kernels
