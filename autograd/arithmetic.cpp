#include "tern/autograd/functional.h"

#include "tern/autograd/operation.h"
#include "tern/kernels/elementwise.h"

namespace tern {
namespace {

using BinaryKernel = Kernel<void(const Tensor&, const Tensor&, Tensor&)>;

Tensor run(const BinaryKernel& kernel, const Tensor& a, const Tensor& b) {
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
Variable add_relu(const Variable& a, const Variable& b) { return apply(AddRelu{}, a, b); }
Variable scale(const Variable& x, double factor) { return apply(Scale{factor}, x); }

}  // namespace tern
