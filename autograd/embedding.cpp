#include "tern/autograd/functional.h"

#include "tern/autograd/operation.h"
#include "tern/kernels/embedding.h"

namespace tern {
namespace {

struct EmbeddingBag {
  Saved indices, offsets, values;
  bool lookup = false;  // one index for each row
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
    Tensor dw = Tensor::empty(weight_shape, dy.options());
    kernels::embedding_bag_backward(dy, bags(), dw);
    return {dw};
  }
};

}  // namespace

Variable embedding_bag(const Tensor& indices, const Tensor& offsets, const Tensor& values, const Variable& weight) {
  check(offsets.defined(), "embedding_bag: offsets undefined of shape [], expected i64 [N + 1]");
  return apply(EmbeddingBag{.indices = indices, .offsets = offsets, .values = values}, weight);
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
