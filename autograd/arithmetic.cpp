#include "tern/autograd/functional.h"

#include "tern/autograd/operation.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/layout.h"

namespace tern {
namespace {

using BinaryKernel = Kernel<void(const Tensor&, const Tensor&, Tensor&)>;

Tensor run(const BinaryKernel& kernel, const Tensor& a, const Tensor& b) {
  check(a.defined() && b.defined(), kernel.name(), ": an operand is undefined, expected a tensor");
  check(a.dtype() == b.dtype(), kernel.name(), ": elements are ", a.dtype(), " in ", a.shape(), " and ", b.dtype(),
        " in ", b.shape(), ", expected one dtype");
  const Shape shape = broadcast(a.shape(), b.shape(), kernel.name());
  TensorOptions options{a.dtype(), a.device()};
  if (a.shape() == shape)
    options.format = a.format();
  else if (b.shape() == shape)
    options.format = b.format();
  Tensor y = Tensor::empty(shape, options);
  kernel(a, b, y);
  return y;
}

struct Add {
  Shape a_shape, b_shape;

  Tensor forward(const Tensor& a, const Tensor& b) {
    a_shape = a.shape();
    b_shape = b.shape();
    return run(kernels::add, a, b);
  }
  Gradients backward(const Tensor& dy, const Needs& needs) const {
    return {needs[0] ? sum_to(dy, a_shape) : Tensor(), needs[1] ? sum_to(dy, b_shape) : Tensor()};
  }
};

struct Subtract {
  Shape a_shape, b_shape;

  Tensor forward(const Tensor& a, const Tensor& b) {
    a_shape = a.shape();
    b_shape = b.shape();
    return run(kernels::subtract, a, b);
  }
  Gradients backward(const Tensor& dy, const Needs& needs) const {
    return {needs[0] ? sum_to(dy, a_shape) : Tensor(), needs[1] ? sum_to(dy, b_shape, -1) : Tensor()};
  }
};

struct Multiply {
  Saved a, b;

  Tensor forward(const Tensor& left, const Tensor& right) {
    a = left;
    b = right;
    return run(kernels::multiply, left, right);
  }
  Gradients backward(const Tensor& dy, const Needs& needs) const {
    return {needs[0] ? sum_to(run(kernels::multiply, dy, b), a.shape()) : Tensor(),
            needs[1] ? sum_to(run(kernels::multiply, dy, a), b.shape()) : Tensor()};
  }
};

struct Divide {
  Shape a_shape;
  Saved b, y;

  Tensor forward(const Tensor& a, const Tensor& divisor) {
    a_shape = a.shape();
    b = divisor;
    const Tensor quotient = run(kernels::divide, a, divisor);
    y = quotient;
    return quotient;
  }
  Gradients backward(const Tensor& dy, const Needs& needs) const {
    const Tensor quotient = run(kernels::divide, dy, b);
    return {needs[0] ? sum_to(quotient, a_shape) : Tensor(),
            needs[1] ? sum_to(run(kernels::multiply, quotient, y), b.shape(), -1) : Tensor()};
  }
};

/// maximum(a, b); with `lesser`, minimum(a, b).
struct GreaterOrLesser {
  bool lesser;
  Saved a, b;

  std::string name() const { return lesser ? "minimum" : "maximum"; }
  Tensor forward(const Tensor& left, const Tensor& right) {
    a = left;
    b = right;
    return run(lesser ? kernels::minimum : kernels::maximum, left, right);
  }
  Gradients backward(const Tensor& dy, const Needs& needs) const {
    const auto share = [&](const Tensor& winner, const Tensor& other, const Shape& shape) {
      Tensor dx = Tensor::empty_like(dy);
      if (lesser)
        kernels::greater_share(other, winner, dy, dx);
      else
        kernels::greater_share(winner, other, dy, dx);
      return sum_to(dx, shape);
    };
    return {needs[0] ? share(a, b, a.shape()) : Tensor(), needs[1] ? share(b, a, b.shape()) : Tensor()};
  }
};

struct Select {
  Saved mask;
  Shape a_shape, b_shape;

  Tensor forward(const Tensor& a, const Tensor& b) {
    check(mask.get().defined() && mask.dtype() == DType::u8, "select: mask of ",
          mask.get().defined() ? to_string(mask.dtype()) : "no tensor", ", expected u8");
    check(b.defined(), "select: the third argument is undefined, expected a tensor");
    check(a.dtype() == b.dtype(), "select: elements are ", a.dtype(), " in ", a.shape(), " and ", b.dtype(), " in ",
          b.shape(), ", expected one dtype");
    a_shape = a.shape();
    b_shape = b.shape();
    const Shape shape = broadcast(broadcast(a_shape, b_shape, "select"), mask.shape(), "select");
    return chosen(a, b, shape, {a.dtype(), a.device(), a_shape == shape ? a.format() : MemoryFormat::row_major});
  }
  Gradients backward(const Tensor& dy, const Needs& needs) const {
    const Tensor zero = number(0, Variable(dy)).value();
    return {needs[0] ? sum_to(chosen(dy, zero, dy.shape(), dy.options()), a_shape) : Tensor(),
            needs[1] ? sum_to(chosen(zero, dy, dy.shape(), dy.options()), b_shape) : Tensor()};
  }
  Tensor chosen(const Tensor& a, const Tensor& b, const Shape& shape, const TensorOptions& options) const {
    Tensor y = Tensor::empty(shape, options);
    kernels::select(a, b, mask, y);
    return y;
  }
};

struct AddRelu {
  Saved y;

  Tensor forward(const Tensor& a, const Tensor& b) {
    check(a.shape() == b.shape(), "add_relu: shapes ", a.shape(), " and ", b.shape(), ", expected equal ones");
    Tensor sum = run(kernels::add, a, b);
    kernels::relu(sum, sum);
    y = sum;
    return sum;
  }
  Gradients backward(Tensor dy, const Needs&) const {
    const Tensor dx = relu_gradient(y, std::move(dy));
    return {dx, dx};
  }
};

struct Scale {
  double factor;

  Tensor forward(const Tensor& x) const {
    Tensor y = Tensor::empty_like(x);
    kernels::scale(x, factor, y);
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs&) const { return {forward(dy)}; }
};

}  // namespace

Variable add(const Variable& a, const Variable& b) { return apply(Add{}, a, b); }
Variable subtract(const Variable& a, const Variable& b) { return apply(Subtract{}, a, b); }
Variable multiply(const Variable& a, const Variable& b) { return apply(Multiply{}, a, b); }
Variable divide(const Variable& a, const Variable& b) { return apply(Divide{}, a, b); }
Variable number(double value, const Variable& like) {
  check(like.defined(), "number: `like` is undefined, expected a tensor");
  return filled({}, value, {like.value().dtype(), like.value().device()});
}
Variable maximum(const Variable& a, const Variable& b) {
  return apply(GreaterOrLesser{.lesser = false, .a = {}, .b = {}}, a, b);
}
Variable minimum(const Variable& a, const Variable& b) {
  return apply(GreaterOrLesser{.lesser = true, .a = {}, .b = {}}, a, b);
}
Variable select(const Tensor& mask, const Variable& a, const Variable& b) {
  return apply(Select{.mask = mask, .a_shape = {}, .b_shape = {}}, a, b);
}
Variable add_relu(const Variable& a, const Variable& b) { return apply(AddRelu{}, a, b); }
Variable scale(const Variable& x, double factor) { return apply(Scale{factor}, x); }

}  // namespace tern
