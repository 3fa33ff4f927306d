#pragma once

#include "tern/kernels/kernel.h"

namespace tern::kernels {

/// The rows of a sparse matrix [N, columns] in CSR form. The elements of row n are those in [offsets[n],
/// offsets[n + 1]); element e lies in column indices[e].
struct Bags {
  Tensor indices;  ///< i64 [elements] in [0, columns)
  Tensor offsets;  ///< i64 [N + 1], from 0 to `elements`, never decreasing; undefined if row n is element n alone
  Tensor values;   ///< f32 [elements], or undefined if all are 1

  int64_t rows() const { return offsets.defined() ? offsets.numel() - 1 : indices.numel(); }
};

/// Returns [N, features] for weight [columns, features]. Throws an error that names what was found unless shapes,
/// dtypes and devices fit. Reads no element.
Shape embedding_bag_output_shape(const Tensor& weight, const Bags& bags);
/// The name of the operation in errors: "embedding" if row n is element n alone.
inline const char* embedding_name(const Bags& bags) { return bags.offsets.defined() ? "embedding_bag" : "embedding"; }
/// Throws an error of `operation` that names the first offset or index that is not as `Bags` says. The tensors are on
/// the CPU.
void check_bag_elements(const char* operation, const Bags& bags, int64_t columns);

/// y[n, :] = Σ values[e] · weight[indices[e], :] over the elements e of row n, in their order. weight: [columns,
/// features]; y: [N, features] in the dtype of weight. The CPU calls `check_bag_elements`. On CUDA, a row with an index
/// outside is NaN, and wrong offsets give wrong sums.
inline constinit Kernel<void(const Tensor& weight, const Bags&, Tensor& y)> embedding_bag{"embedding_bag"};
/// dw[c, :] = Σ values[e] · dy[row of e, :] over the elements e of column c, in their order. So dw has the same bits
/// for every number of threads. Zeros in columns without elements. dy: [N, features]; dw: [columns, features] in its
/// dtype. The CPU and CUDA treat wrong indices and offsets as above; on CUDA, elements with an index outside do not
/// count.
inline constinit Kernel<void(const Tensor& dy, const Bags&, Tensor& dw)> embedding_bag_backward{
    "embedding_bag_backward"};

/// w[rows[i], :] = values[i, :]. values: [k, features], in the dtype of w [columns, features]; rows: i64 [k] in [0,
/// columns), no row twice. The CPU throws if a row is outside. On CUDA, such a row is left out.
inline constinit Kernel<void(const Tensor& values, const Tensor& rows, Tensor& w)> put_rows{"put_rows"};

}  // namespace tern::kernels
