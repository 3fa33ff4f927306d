#pragma once

#include "tern/kernels/kernel.h"

// Products of a sparse matrix [N, columns] with a dense one. The sparse matrix is in compressed sparse rows: row n has
// the elements [offsets[n], offsets[n + 1]); element e is in column indices[e] and has the value values[e], or 1 if
// `values` is undefined. indices: i64 [elements], offsets: i64 [N + 1], values: [elements] in the dtype of weight.

namespace tern::kernels {

/// Throws an error that says what does not fit: shapes, dtypes and, for tensors on the CPU, offsets that fall and
/// indices outside [0, columns).
void check_sparse_rows(const char* operation, const Tensor& indices, const Tensor& offsets, const Tensor& values,
                       const Shape& dense, int64_t columns);

/// y [N, features] = the sparse matrix times weight [columns, features], f32 or f64. On CUDA, a row with an index or
/// offset out of range is NaN.
inline constinit Kernel<void(const Tensor& weight, const Tensor& indices, const Tensor& offsets, const Tensor& values,
                             Tensor& y)>
    embedding_bag{"embedding_bag"};
/// dweight [columns, features] = the transposed sparse matrix times dy [N, features]. It adds elements in their order,
/// so the result does not depend on threads.
inline constinit Kernel<void(const Tensor& dy, const Tensor& indices, const Tensor& offsets, const Tensor& values,
                             Tensor& dweight)>
    embedding_bag_backward{"embedding_bag_backward"};

}  // namespace tern::kernels
