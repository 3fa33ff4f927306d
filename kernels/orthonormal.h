#pragma once

#include "tern/kernels/kernel.h"

// What PowerSGD (arXiv 1905.13727) does with its narrow factors, f32 [n, k], row-major.

namespace tern::kernels {

/// Makes the columns of p orthonormal in their order, by Gram and Schmidt's method with sums in f64. A column that
/// depends on those before it becomes 0.
inline constinit Kernel<void(Tensor& p)> orthonormalize{"orthonormalize"};

/// Columns of kept = those of q that are not 0. The other columns of `kept` do not change.
inline constinit Kernel<void(const Tensor& q, Tensor& kept)> keep_columns{"keep_columns"};

/// A column shorter than this part of its length before it was made orthogonal depends on the columns before it.
inline constexpr double kDependent = 1e-6;

/// The same on the CPU. The factors are narrow, so plain loops are fast enough.
void orthonormalize_by_loops(Tensor& p);
void keep_columns_by_loops(const Tensor& q, Tensor& kept);

/// These throw an error that names the operation if the arguments do not fit each other.
inline void check_orthonormalize(const Tensor& p) {
  check(p.rank() == 2 && p.dtype() == DType::f32 && p.format() == MemoryFormat::row_major, "orthonormalize: found ",
        p.dtype(), " ", p.shape(), ", expected f32 [n, k], row-major");
}
inline void check_keep_columns(const Tensor& q, const Tensor& kept) {
  check_alike("keep_columns", q, kept);
  check(q.rank() == 2 && q.dtype() == DType::f32, "keep_columns: found ", q.dtype(), " ", q.shape(),
        ", expected f32 [n, k]");
}

}  // namespace tern::kernels
