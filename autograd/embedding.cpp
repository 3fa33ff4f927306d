#include <algorithm>

#include "tern/autograd/functional.h"
#include "tern/autograd/operation.h"
#include "tern/kernels/embedding.h"

namespace tern {
namespace {

struct EmbeddingBag {
  Saved indices, offsets, values;
  bool lookup = false;                             // one index for each row
  std::shared_ptr<GradientSlot> sparse_leaf = {};  // takes the gradient by rows
  Shape weight_shape = {};

  std::string name() const { return lookup ? "embedding" : "embedding_bag"; }
  kernels::Bags bags() const { return {indices, lookup ? Tensor() : offsets.get(), values}; }

  Tensor forward(const Tensor& weight) {
    weight_shape = weight.shape();
    Tensor y = Tensor::empty(kernels::embedding_bag_output_shape(weight, bags()), {weight.dtype(), weight.device()});
    kernels::embedding_bag(weight, bags(), y);
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    if (sparse_leaf) {
      sparse_leaf->give_rows(rows_of_gradient(dy));
      return {Tensor()};
    }
    Tensor dw = Tensor::empty(weight_shape, dy.options());
    kernels::embedding_bag_backward(dy, bags(), dw);
    return {dw};
  }

  /// The rows of the gradient that have elements. The CPU finds them.
  RowGradient rows_of_gradient(const Tensor& dy) const {
    const std::vector<int64_t> columns = indices.get().to_vector<int64_t>();
    std::vector<int64_t> touched = columns;
    std::ranges::sort(touched);
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    std::vector<int64_t> places;
    places.reserve(columns.size());
    for (const int64_t column : columns) places.push_back(std::ranges::lower_bound(touched, column) - touched.begin());
    const auto on_device = [&](const std::vector<int64_t>& numbers) {
      return Tensor::from<int64_t>({std::ssize(numbers)}, numbers).to(dy.device());
    };
    Tensor dw = Tensor::empty({std::ssize(touched), weight_shape[1]}, dy.options());
    kernels::Bags narrow = bags();
    narrow.indices = on_device(places);
    kernels::embedding_bag_backward(dy, narrow, dw);
    return {.rows = on_device(touched), .values = dw};
  }
};

/// The slot of `weight` if it takes a gradient by rows.
std::shared_ptr<GradientSlot> sparse_leaf_of(const Variable& weight, RowsOfGradient rows) {
  const auto& slot = weight.slot();
  return rows == RowsOfGradient::touched && slot && !slot->producer ? slot : nullptr;
}

}  // namespace

Variable embedding_bag(const Tensor& indices, const Tensor& offsets, const Tensor& values, const Variable& weight,
                       RowsOfGradient rows) {
  check(offsets.defined(), "embedding_bag: offsets undefined of shape [], expected i64 [N + 1]");
  return apply(
      EmbeddingBag{
          .indices = indices, .offsets = offsets, .values = values, .sparse_leaf = sparse_leaf_of(weight, rows)},
      weight);
}

Variable embedding(const Tensor& indices, const Variable& weight) {
  check(indices.defined() && indices.dtype() == DType::i64 && indices.rank() < Shape::kMaxRank, "embedding: indices ",
        indices.dtype(), " of shape ", indices.shape(), ", expected i64 with at most ", Shape::kMaxRank - 1,
        " dimensions");
  const Tensor flat = indices.to(MemoryFormat::row_major).reshape({indices.numel()});
  const Variable rows = apply(EmbeddingBag{.indices = flat, .offsets = {}, .values = {}, .lookup = true}, weight);
  std::vector<int64_t> extents(indices.shape().begin(), indices.shape().end());
  extents.push_back(weight.shape()[-1]);
  return reshape(rows, Shape(extents));
}

}  // namespace tern
