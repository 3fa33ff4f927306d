#include "tern/autograd/functional.h"

#include "tern/autograd/operation.h"
#include "tern/kernels/layout.h"

namespace tern {
namespace {

struct Reshape {
  std::vector<int64_t> extents;
  Shape x_shape;

  Tensor forward(const Tensor& x) {
    x_shape = x.shape();
    return in_format(x, MemoryFormat::row_major).reshape(extents);
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    return {in_format(dy, MemoryFormat::row_major).reshape(x_shape)};
  }
};

struct Transpose {
  int first, second;

  Tensor forward(const Tensor& x) const {
    Shape shape = x.shape();
    std::swap(shape[first], shape[second]);
    Tensor y = Tensor::empty(shape, {x.dtype(), x.device()});
    kernels::transpose(in_format(x, MemoryFormat::row_major), shape.normalize(first), shape.normalize(second), y);
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs&) const { return {forward(dy)}; }
};

struct Concat {
  int dimension;
  std::vector<Shape> shapes;

  Tensor forward(std::span<const Tensor> inputs) {
    check(!inputs.empty(), "concat: no inputs");
    const Tensor& like = inputs.front();
    dimension = like.shape().normalize(dimension);
    Shape total = like.shape();
    total[dimension] = 0;
    for (const Tensor& x : inputs) {
      Shape expected = like.shape();
      if (x.rank() == like.rank()) expected[dimension] = x.size(dimension);
      check(x.shape() == expected && x.dtype() == like.dtype(), "concat: ", x.dtype(), " ", x.shape(), " beside ",
            like.dtype(), " ", like.shape(), " along dimension ", dimension);
      total[dimension] += x.size(dimension);
      shapes.push_back(x.shape());
    }
    Tensor y = Tensor::empty(total, like.options());
    kernels::Offsets offsets{};
    for (const Tensor& x : inputs) {
      kernels::insert(in_format(x, y.format()), offsets, y);
      offsets[static_cast<size_t>(dimension)] += x.size(dimension);
    }
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs& needs) const {
    Gradients gradients(shapes.size());
    kernels::Offsets offsets{};
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (needs[i]) {
        gradients[i] = Tensor::empty(shapes[i], dy.options());
        kernels::extract(dy, offsets, gradients[i]);
      }
      offsets[static_cast<size_t>(dimension)] += shapes[i][dimension];
    }
    return gradients;
  }
};

struct Slice {
  int dimension;
  int64_t begin, end;
  Shape x_shape;
  kernels::Offsets offsets{};

  Tensor forward(const Tensor& x) {
    x_shape = x.shape();
    dimension = x_shape.normalize(dimension);
    check(0 <= begin && begin <= end && end <= x_shape[dimension], "slice: indices ", begin, " to ", end,
          " of dimension ", dimension, " of shape ", x_shape);
    offsets[static_cast<size_t>(dimension)] = begin;
    Shape shape = x_shape;
    shape[dimension] = end - begin;
    Tensor y = Tensor::empty(shape, x.options());
    kernels::extract(x, offsets, y);
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dx = Tensor::zeros(x_shape, dy.options());
    kernels::insert(dy, offsets, dx);
    return {dx};
  }
};

struct Pad {
  std::vector<Padding> padding;
  double value;
  Shape x_shape;
  kernels::Offsets offsets{};

  Tensor forward(const Tensor& x) {
    x_shape = x.shape();
    check(padding.size() == static_cast<size_t>(x.rank()), "pad: ", padding.size(), " paddings for shape ", x_shape,
          ", expected one per dimension");
    Shape shape = x_shape;
    for (int i = 0; i < x.rank(); ++i) {
      const auto [before, after] = padding[static_cast<size_t>(i)];
      check(before >= 0 && after >= 0, "pad: ", before, " and ", after, " around dimension ", i,
            ", expected 0 or more");
      offsets[static_cast<size_t>(i)] = before;
      shape[i] += before + after;
    }
    Tensor y = Tensor::empty(shape, x.options());
    kernels::fill(y, value);
    kernels::insert(x, offsets, y);
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dx = Tensor::empty(x_shape, dy.options());
    kernels::extract(dy, offsets, dx);
    return {dx};
  }
};

struct Convert {
  DType dtype, x_dtype = dtype;

  static Tensor as(const Tensor& x, DType dtype) {
    Tensor y = Tensor::empty(x.shape(), {dtype, x.device(), x.format()});
    kernels::convert(x, y);
    return y;
  }
  Tensor forward(const Tensor& x) {
    x_dtype = x.dtype();
    return as(x, dtype);
  }
  Gradients backward(const Tensor& dy, const Needs&) const { return {as(dy, x_dtype)}; }
};

}  // namespace

Tensor in_format(Tensor x, MemoryFormat format) {
  if (x.format() == format) return x;
  Tensor y = Tensor::empty(x.shape(), {x.dtype(), x.device(), format});
  kernels::convert(x, y);
  return y;
}

Variable reshape(const Variable& x, std::initializer_list<int64_t> extents) {
  return apply(Reshape{.extents = extents, .x_shape = {}}, x);
}
Variable flatten(const Variable& x) {
  check(x.shape().rank() > 0, "flatten: shape [], expected [N, ...]");
  return reshape(x, {x.shape()[0], x.shape().numel_from(1)});
}
Variable transpose(const Variable& x, int first, int second) { return apply(Transpose{first, second}, x); }
Variable concat(std::span<const Variable> inputs, int dimension) {
  return apply_list(Concat{.dimension = dimension, .shapes = {}}, inputs);
}
Variable concat(std::initializer_list<Variable> inputs, int dimension) {
  return concat(std::span(inputs.begin(), inputs.size()), dimension);
}
Variable slice(const Variable& x, int dimension, int64_t begin, int64_t end) {
  return apply(Slice{.dimension = dimension, .begin = begin, .end = end, .x_shape = {}}, x);
}
Variable pad(const Variable& x, const std::vector<Padding>& padding, double value) {
  return apply(Pad{.padding = padding, .value = value, .x_shape = {}}, x);
}
Variable convert(const Variable& x, DType dtype) {
  check(is_floating(dtype) && is_floating(x.value().dtype()), "convert: ", x.value().dtype(), " to ", dtype,
        ", expected floating dtypes");
  if (dtype == x.value().dtype()) return x;
  return apply(Convert{.dtype = dtype}, x);
}

}  // namespace tern
