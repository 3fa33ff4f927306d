#include "tern/autograd/functional.h"
#include "tern/autograd/operation.h"
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

/// An activation whose gradient is a function of its output. With `kOfRows`, it works along the last dimension.
template <const auto& kForward, const auto& kBackward, bool kOfRows = false>
struct OutputActivation {
  Saved y;

  static std::string name() { return kForward.name(); }
  Tensor forward(const Tensor& x) {
    check(!kOfRows || x.rank() > 0, kForward.name(), ": shape [], expected a last dimension");
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
using Tanh = OutputActivation<kernels::tanh, kernels::tanh_backward>;
using Softmax = OutputActivation<kernels::softmax, kernels::softmax_backward, true>;
using LogSoftmax = OutputActivation<kernels::log_softmax, kernels::log_softmax_backward, true>;

}  // namespace

Variable relu(const Variable& x) { return apply(Relu{}, x); }
Variable leaky_relu(const Variable& x, double slope) { return apply(LeakyRelu{.option = slope, .x = {}}, x); }
Variable sigmoid(const Variable& x) { return apply(Sigmoid{}, x); }
Variable tanh(const Variable& x) { return apply(Tanh{}, x); }
Variable gelu(const Variable& x, GeluForm form) { return apply(Gelu{.option = form, .x = {}}, x); }

Variable softmax(const Variable& x) { return apply(Softmax{}, x); }
Variable log_softmax(const Variable& x) { return apply(LogSoftmax{}, x); }

Tensor relu_gradient(const Tensor& y, Tensor dy) {
  dy = in_format(std::move(dy), y.format());
  Tensor dx = dy.is_shared() ? Tensor::empty_like(y) : dy;
  kernels::relu_backward(y, dy, dx);
  return dx;
}
}  // namespace tern
