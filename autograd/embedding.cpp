#include "tern/kernels/embedding.h"
#include "tern/autograd/functional.h"
#include "tern/autograd/operation.h"

namespace tern {
namespace {

struct EmbeddingBag {
  Saved indices, offsets, values;
  TensorOptions weight_options;
  Shape weight_shape;

  static std::string name() { return "embedding_bag"; }

  Tensor forward(const Tensor& weight) {
    check(weight.rank() == 2 && offsets.rank() == 1 && offsets.size(0) >= 1, "embedding_bag: weight of shape ",
          weight.shape(), ", offsets of shape ", offsets.shape(), ", expected [columns, features] and [N + 1]");
    weight_options = weight.options();
    weight_shape = weight.shape();
    Tensor y = Tensor::empty({offsets.size(0) - 1, weight.size(1)}, weight_options);
    kernels::embedding_bag(weight, indices, offsets, values, y);
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dweight = Tensor::empty(weight_shape, weight_options);
    kernels::embedding_bag_backward(dy, indices, offsets, values, dweight);
    return {dweight};
  }
};

}  // namespace

Variable embedding_bag(const Tensor& indices, const Tensor& offsets, const Tensor& values, const Variable& weight) {
  return apply(
      EmbeddingBag{.indices = indices, .offsets = offsets, .values = values, .weight_options = {}, .weight_shape = {}},
      weight);
}

}  // namespace tern
