#include "tern/autograd/functional.h"

#include "tern/autograd/operation.h"
#include "tern/kernels/embedding.h"

namespace tern {
namespace {

struct EmbeddingBag {
  Saved indices, offsets, values;
  Shape weight_shape;

  kernels::Bags bags() const { return {indices, offsets, values}; }

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
  return apply(EmbeddingBag{.indices = indices, .offsets = offsets, .values = values, .weight_shape = {}}, weight);
}

}  // namespace tern
