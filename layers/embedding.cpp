#include "tern/layers/embedding.h"

#include "tern/autograd/functional.h"
#include "tern/layers/initialize.h"

namespace tern {
namespace {

/// Linear's first values, for the weight as for the bias. Linear's weight is [features, columns].
Initializer as_linear(const EmbeddingBag::Options& options) {
  return default_bias({options.features, options.columns});
}

}  // namespace

Embedding::Embedding(const Options& options)
    : weight(add_parameter("weight", {options.rows, options.features}, normal(1))) {}

EmbeddingBag::EmbeddingBag(const Options& options)
    : weight(add_parameter("weight", {options.columns, options.features},
                           options.weight_initializer ? options.weight_initializer : as_linear(options))),
      bias(options.bias ? &add_parameter("bias", {options.features}, as_linear(options)) : nullptr),
      rows_(options.rows) {}

Variable EmbeddingBag::forward(const Tensor& indices, const Tensor& offsets, const Tensor& values) {
  const Variable y = embedding_bag(indices, offsets, values, weight.variable(), rows_);
  return bias != nullptr ? y + bias->variable() : y;
}

}  // namespace tern
