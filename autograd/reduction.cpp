#include "tern/autograd/functional.h"

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
    const std::vector<bool> summed = which_are_summed();
    int64_t count = 1;
    for (int i = 0; i < x.rank(); ++i) {
      if (!summed[static_cast<size_t>(i)]) continue;
      count *= x.size(i);
      kept[i] = 1;
    }
    check(!mean || count != 0, "mean: input of shape ", x.shape(),
          ", each mean is of no elements, expected one or more");
    if (mean) factor = 1 / static_cast<double>(count);
    Tensor y = Tensor::empty(kept, {x.dtype(), x.device()});
    kernels::sum(x, factor, y);
    return keep ? y : y.reshape(without_summed());
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dx = Tensor::empty(x_shape, x_options);
    kernels::broadcast_to(in_format(dy, MemoryFormat::row_major).reshape(kept), factor, dx);
    return {dx};
  }

  std::vector<bool> which_are_summed() const {
    std::vector<bool> summed(static_cast<size_t>(x_shape.rank()), dimensions.empty());
    for (int dimension : dimensions) {
      const auto place = static_cast<size_t>(x_shape.normalize(dimension));
      check(!summed[place], mean ? "mean" : "sum", ": dimension ", place, " of ", x_shape, " is given twice");
      summed[place] = true;
    }
    return summed;
  }
  Shape without_summed() const {
    const std::vector<bool> summed = which_are_summed();
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
