#include "tern/autograd/functional.h"

#include "tern/autograd/operation.h"

namespace tern {
namespace {

struct MaxPool {
  PoolGeometry geometry;
  Shape x_shape;
  Saved where;

  Tensor forward(const Tensor& x) {
    check(geometry.window.h * geometry.window.w <= 255, "max_pool2d: window ", geometry.window.h, "x",
          geometry.window.w, " over input of shape ", x.shape(), ", expected at most 255 elements");
    x_shape = x.shape();
    TensorOptions options = x.options();
    Tensor y = Tensor::empty(kernels::pool2d_output_shape(x_shape, geometry), options);
    options.dtype = DType::u8;
    Tensor places = Tensor::empty(y.shape(), options);
    kernels::max_pool2d(x, geometry, y, places);
    where = places;
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dx = Tensor::empty(x_shape, dy.options());
    kernels::max_pool2d_backward(dy, where, geometry, dx);
    return {dx};
  }
};

struct AveragePool {
  PoolGeometry geometry;
  Shape x_shape;

  Tensor forward(const Tensor& x) {
    x_shape = x.shape();
    Tensor y = Tensor::empty(kernels::pool2d_output_shape(x_shape, geometry), x.options());
    kernels::average_pool2d(x, geometry, y);
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dx = Tensor::empty(x_shape, dy.options());
    kernels::average_pool2d_backward(dy, geometry, dx);
    return {dx};
  }
};

}  // namespace

Variable max_pool2d(const Variable& x, const PoolGeometry& geometry) {
  return apply(MaxPool{.geometry = geometry, .x_shape = {}, .where = {}}, x);
}
Variable average_pool2d(const Variable& x, const PoolGeometry& geometry) {
  return apply(AveragePool{.geometry = geometry, .x_shape = {}}, x);
}
Variable global_average_pool2d(const Variable& x) {
  check(x.shape().rank() == 4, "global_average_pool2d: shape ", x.shape(), ", expected [N, C, H, W]");
  const Extent2 all{x.shape()[2], x.shape()[3]};
  return average_pool2d(x, {.window = all, .stride = all});
}

}  // namespace tern
