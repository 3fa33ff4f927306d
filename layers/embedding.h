#pragma once

#include "tern/autograd/functional.h"
#include "tern/layers/module.h"

namespace tern {

/// The rows of weight [rows, features] with given indices, as torch.nn.Embedding. First values: N(0, 1), as there.
class Embedding final : public Module {
 public:
  struct Options {
    int64_t rows = 1, features = 1;
  };
  explicit Embedding(const Options& options);

  /// indices: i64 in [0, rows), of any shape. Gives [..., features].
  Variable forward(const Tensor& indices) { return embedding(indices, weight.variable()); }
  /// `forward`, then the output hook.
  Variable operator()(const Tensor& indices) {
    return run([&] { return forward(indices); });
  }

  Parameter& weight;
};

/// A sparse matrix [N, columns] in CSR form, times weight [columns, features], plus bias [features]: `embedding_bag`,
/// as torch.nn.EmbeddingBag with mode="sum" and include_last_offset=True, which has no bias. It is also a Linear whose
/// input is sparse and whose weight is transposed. The first values are Linear's: uniform in ±1/√columns. (PyTorch's
/// EmbeddingBag draws from N(0, 1), which is far too large for bags of words.)
class EmbeddingBag final : public Module {
 public:
  struct Options {
    int64_t columns = 1, features = 1;
    bool bias = true;
    RowsOfGradient rows = RowsOfGradient::all;  ///< of the gradient of `weight`; see `embedding_bag`
    Initializer weight_initializer = {};        ///< empty: Linear's
  };
  explicit EmbeddingBag(const Options& options);

  /// indices: i64 [elements] in [0, columns). offsets: i64 [N + 1]: the elements of row n are those in [offsets[n],
  /// offsets[n + 1]). values: f32 [elements], or undefined if all are 1. Gives [N, features].
  Variable forward(const Tensor& indices, const Tensor& offsets, const Tensor& values = {});
  /// `forward`, then the output hook.
  Variable operator()(const Tensor& indices, const Tensor& offsets, const Tensor& values = {}) {
    return run([&] { return forward(indices, offsets, values); });
  }

  RowsOfGradient rows_of_gradient() const { return rows_; }

  Parameter& weight;
  Parameter* const bias;  ///< null if there is none

 private:
  RowsOfGradient rows_;
};

}  // namespace tern
