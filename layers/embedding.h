#pragma once

#include "tern/autograd/functional.h"
#include "tern/layers/initialize.h"
#include "tern/layers/module.h"

namespace tern {

/// A linear layer for sparse rows: y[N, features] = x · weight + bias for a sparse x [N, columns] in compressed sparse
/// rows (see `embedding_bag`). As torch.nn.EmbeddingBag with mode "sum" and a bias. It has several inputs, so it is a
/// Module and not a Layer.
class EmbeddingBag final : public Module {
 public:
  struct Options {
    int64_t columns = 1, features = 1;
    bool bias = true;
    Initializer weight_initializer = normal(1);  ///< as PyTorch's; large for rows with many elements
  };
  explicit EmbeddingBag(const Options& options)
      : weight(add_parameter("weight", {options.columns, options.features}, options.weight_initializer)),
        bias(options.bias ? &add_parameter("bias", {options.features}, constant(0)) : nullptr) {}

  /// indices: i64 [elements], offsets: i64 [N + 1], values: [elements], or undefined if all are 1.
  Variable operator()(const Tensor& indices, const Tensor& offsets, const Tensor& values = {}) {
    return run([&] {
      const Variable y = embedding_bag(indices, offsets, values, weight.variable());
      return bias ? y + bias->variable() : y;
    });
  }

  Parameter& weight;      ///< [columns, features]
  Parameter* const bias;  ///< null if there is none
};

}  // namespace tern
