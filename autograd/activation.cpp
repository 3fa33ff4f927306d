#include "tern/autograd/functional.h"
#include "tern/autograd/operation.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/loss.h"

namespace tern {
namespace {

struct Relu {
  Saved y;

  Tensor forward(const Tensor& x) {
    Tensor result = Tensor::empty_like(x);
    kernels::relu(x, result);
    y = result;
    return result;
  }
  Gradients backward(Tensor dy, const Needs&) const { return {relu_gradient(y, std::move(dy))}; }
};

/// An activation with an option. Its gradient is a function of its input.
template <const auto& kForward, const auto& kBackward, class Option>
struct InputActivation {
  Option option;
  Saved x;

  static std::string name() { return kForward.name(); }
  Tensor forward(const Tensor& input) {
    x = input;
    Tensor y = Tensor::empty_like(input);
    kForward(input, option, y);
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dx = Tensor::empty_like(dy);
    kBackward(x, dy, option, dx);
    return {dx};
  }
};
using LeakyRelu = InputActivation<kernels::leaky_relu, kernels::leaky_relu_backward, double>;
using Gelu = InputActivation<kernels::gelu, kernels::gelu_backward, GeluForm>;
using Power = InputActivation<kernels::pow, kernels::pow_backward, double>;
using Clamp = InputActivation<kernels::clamp, kernels::clamp_backward, kernels::Limits>;

/// A function without options. Its gradient is a function of its input.
template <const auto& kForward, const auto& kBackward>
struct InputFunction {
  Saved x;

  static std::string name() { return kForward.name(); }
  Tensor forward(const Tensor& input) {
    x = input;
    Tensor y = Tensor::empty_like(input);
    kForward(input, y);
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dx = Tensor::empty_like(dy);
    kBackward(x, dy, dx);
    return {dx};
  }
};
void log_backward(const Tensor& x, const Tensor& dy, Tensor& dx) { kernels::divide(dy, x, dx); }
using Silu = InputFunction<kernels::silu, kernels::silu_backward>;
using Abs = InputFunction<kernels::abs, kernels::abs_backward>;
using Log = InputFunction<kernels::log, log_backward>;

void exp_backward(const Tensor& y, const Tensor& dy, Tensor& dx) { kernels::multiply(dy, y, dx); }
void sqrt_backward(const Tensor& y, const Tensor& dy, Tensor& dx) {
  kernels::divide(dy, y, dx);
  kernels::scale(dx, 0.5, dx);
}

/// An activation whose gradient is a function of its output. With `kOfRows`, it works along the last dimension.
template <const auto& kForward, const auto& kBackward, bool kOfRows = false>
struct OutputActivation {
  Saved y;

  static std::string name() { return kForward.name(); }
  Tensor forward(const Tensor& x) {
    const Tensor input = kOfRows ? in_format(x, MemoryFormat::row_major) : x;
    Tensor result = Tensor::empty_like(input);
    kForward(input, result);
    y = result;
    return result;
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dx = Tensor::empty_like(dy);
    kBackward(y, dy, dx);
    return {dx};
  }
};
using Sigmoid = OutputActivation<kernels::sigmoid, kernels::sigmoid_backward>;
using Exp = OutputActivation<kernels::exp, exp_backward>;
using Sqrt = OutputActivation<kernels::sqrt, sqrt_backward>;
using Tanh = OutputActivation<kernels::tanh, kernels::tanh_backward>;
using Softmax = OutputActivation<kernels::softmax, kernels::softmax_backward, true>;
using LogSoftmax = OutputActivation<kernels::log_softmax, kernels::log_softmax_backward, true>;

}  // namespace

Variable relu(const Variable& x) { return apply(Relu{}, x); }
Variable leaky_relu(const Variable& x, double slope) { return apply(LeakyRelu{.option = slope, .x = {}}, x); }
Variable sigmoid(const Variable& x) { return apply(Sigmoid{}, x); }
Variable tanh(const Variable& x) { return apply(Tanh{}, x); }
Variable gelu(const Variable& x, GeluForm form) { return apply(Gelu{.option = form, .x = {}}, x); }

Variable silu(const Variable& x) { return apply(Silu{}, x); }

Variable exp(const Variable& x) { return apply(Exp{}, x); }
Variable log(const Variable& x) { return apply(Log{}, x); }
Variable sqrt(const Variable& x) { return apply(Sqrt{}, x); }
Variable abs(const Variable& x) { return apply(Abs{}, x); }
Variable pow(const Variable& x, double exponent) { return apply(Power{.option = exponent, .x = {}}, x); }
Variable clamp(const Variable& x, double low, double high) {
  check(low <= high, "clamp: limits ", low, " and ", high, ", expected low <= high");
  return apply(Clamp{.option = {low, high}, .x = {}}, x);
}

Variable softmax(const Variable& x) {
  return with_a_dimension(x, [](const Variable& values) { return apply(Softmax{}, values); });
}
Variable log_softmax(const Variable& x) {
  return with_a_dimension(x, [](const Variable& values) { return apply(LogSoftmax{}, values); });
}

Tensor relu_gradient(const Tensor& y, Tensor dy) {
  dy = in_format(std::move(dy), y.format());
  Tensor dx = dy.is_shared() ? Tensor::empty_like(y) : dy;
  kernels::relu_backward(y, dy, dx);
  return dx;
}
}  // namespace tern
