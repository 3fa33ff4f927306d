#include "tern/autograd/functional.h"

#include <algorithm>

#include "tern/autograd/operation.h"
#include "tern/kernels/pooling.h"

namespace tern {
namespace {

struct MaxPool {
  PoolGeometry geometry;
  Shape x_shape;
  Saved where;

  Tensor forward(const Tensor& x) {
    x_shape = x.shape();
    TensorOptions options = x.options();
    Tensor y = Tensor::empty(kernels::pool2d_output_shape(x_shape, geometry, "max_pool2d"), options);
    options.dtype = kernels::place_dtype(geometry);
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
    Tensor y = Tensor::empty(kernels::pool2d_output_shape(x_shape, geometry, "average_pool2d"), x.options());
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
  return with_a_batch(x, [&](const Variable& images) {
    return apply(MaxPool{.geometry = geometry, .x_shape = {}, .where = {}}, images);
  });
}
Variable average_pool2d(const Variable& x, const PoolGeometry& geometry) {
  return with_a_batch(
      x, [&](const Variable& images) { return apply(AveragePool{.geometry = geometry, .x_shape = {}}, images); });
}
Variable adaptive_average_pool2d(const Variable& x, const Extent2& size) {
  const Shape& shape = x.shape();
  check(shape.rank() >= 3 && shape.rank() <= 4 && size.h >= 1 && size.w >= 1 && shape[-2] >= 1 && shape[-1] >= 1,
        "adaptive_average_pool2d: ", size.h, "x", size.w, " windows over ", shape,
        ", expected one or more over [N, C, H, W] or [C, H, W]");
  const int64_t h = shape[-2], w = shape[-1];
  if (h % size.h == 0 && w % size.w == 0) {
    const Extent2 window{h / size.h, w / size.w};
    return average_pool2d(x, {.window = window, .stride = window});
  }
  const int64_t planes = shape.numel() / (h * w);
  const Shape pooled{planes, size.h, size.w};  // refuses sizes that no tensor has
  // Windows of different sizes: the means along one axis, then along the other. So a NaN stays in its windows.
  const DType dtype = x.value().dtype();
  const auto means = [](const Variable& of, int dimension, int64_t windows) {
    const int64_t extent = of.shape()[dimension];
    std::vector<Variable> all;
    for (int64_t i = 0; i < windows; ++i) {
      const int64_t begin = i * extent / windows, end = ((i + 1) * extent + windows - 1) / windows;
      all.push_back(mean(slice(of, dimension, begin, end), {dimension}, true));
    }
    return concat(all, dimension);
  };
  const Variable images = reshape(convert(x, parameter_dtype(dtype)), {planes, h, w});
  const Variable y = means(means(images, 2, size.w), 1, size.h);
  Shape result = shape;
  result[-2] = pooled[1];
  result[-1] = pooled[2];
  return convert(reshape(y, result), dtype);
}
Variable upsample_nearest2d(const Variable& x, const Extent2& factor) {
  const Shape& shape = x.shape();
  check(shape.rank() >= 2 && factor.h >= 1 && factor.w >= 1, "upsample_nearest2d: factor ", factor.h, "x", factor.w,
        " for ", shape, ", expected 1 or more for [..., H, W]");
  const int64_t h = shape[-2], w = shape[-1], planes = shape.numel_from(0) / std::max<int64_t>(1, h * w);
  const Variable repeated = expand(reshape(x, {planes, h, 1, w, 1}), {planes, h, factor.h, w, factor.w});
  Shape result = shape;
  result[-2] = h * factor.h;
  result[-1] = w * factor.w;
  return reshape(repeated, result);
}
Variable global_average_pool2d(const Variable& x) {
  check(x.shape().rank() == 3 || x.shape().rank() == 4, "global_average_pool2d: shape ", x.shape(),
        ", expected [N, C, H, W] or [C, H, W]");
  const Extent2 all{x.shape()[-2], x.shape()[-1]};
  return average_pool2d(x, {.window = all, .stride = all});
}

}  // namespace tern
