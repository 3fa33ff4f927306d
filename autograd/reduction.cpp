#include "tern/autograd/reduction.h"

#include "tern/autograd/layout.h"
#include "tern/autograd/operation.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/reduction.h"

namespace tern {
namespace {

struct Sum {
  std::vector<int> dimensions;
  bool keep, mean;
  double factor = 1;
  Shape x_shape = {}, kept = {};
  TensorOptions x_options = {};

  Tensor forward(const Tensor& x) {
    x_shape = kept = x.shape();
    x_options = x.options();
    for (int dimension : dimensions) kept[dimension] = 1;
    if (dimensions.empty())
      for (int i = 0; i < x.rank(); ++i) kept[i] = 1;
    if (mean) factor = static_cast<double>(kept.numel()) / static_cast<double>(x.numel());
    Tensor y = Tensor::empty(kept, {x.dtype(), x.device()});
    kernels::sum(x, factor, y);
    return keep ? y : y.reshape(without_summed());
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dx = Tensor::empty(x_shape, x_options);
    kernels::broadcast_to(in_format(dy, MemoryFormat::row_major).reshape(kept), factor, dx);
    return {dx};
  }

  Shape without_summed() const {
    std::vector<bool> summed(static_cast<size_t>(x_shape.rank()), dimensions.empty());
    for (int dimension : dimensions) summed[static_cast<size_t>(x_shape.normalize(dimension))] = true;
    std::vector<int64_t> extents;
    for (int i = 0; i < x_shape.rank(); ++i)
      if (!summed[static_cast<size_t>(i)]) extents.push_back(x_shape[i]);
    return Shape(extents);
  }
};

}  // namespace

Variable sum(const Variable& x, const std::vector<int>& dimensions, bool keep) {
  return apply(Sum{.dimensions = dimensions, .keep = keep, .mean = false}, x);
}
Variable mean(const Variable& x, const std::vector<int>& dimensions, bool keep) {
  return apply(Sum{.dimensions = dimensions, .keep = keep, .mean = true}, x);
}

Tensor sum_to(const Tensor& dy, const Shape& shape, double scale) {
  if (shape == dy.shape()) {
    if (scale == 1) return dy;
    Tensor dx = Tensor::empty_like(dy);
    kernels::scale(dy, scale, dx);
    return dx;
  }
  std::vector<int64_t> aligned(static_cast<size_t>(dy.rank() - shape.rank()), 1);
  aligned.insert(aligned.end(), shape.begin(), shape.end());
  Tensor dx = Tensor::empty(Shape(aligned), {dy.dtype(), dy.device()});
  kernels::sum(dy, scale, dx);
  return dx.reshape(shape);
}

}  // namespace tern
