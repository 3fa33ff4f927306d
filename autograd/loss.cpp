#include "tern/autograd/functional.h"

#include "tern/autograd/operation.h"
#include "tern/kernels/loss.h"

namespace tern {
namespace {

struct CrossEntropy {
  Saved labels;
  double smoothing;
  TensorOptions x_options;
  Saved probabilities;

  Tensor forward(const Tensor& x) {
    check(x.rank() == 2 && labels.shape() == Shape{x.size(0)} && labels.dtype() == DType::i64,
          "cross_entropy: logits of shape ", x.shape(), ", labels ", labels.dtype(), " of shape ", labels.shape(),
          ", expected [N, C] and i64 [N]");
    check(x.size(0) != 0, "cross_entropy: logits of shape ", x.shape(), ", expected one row or more to average over");
    x_options = x.options();
    const TensorOptions wide{parameter_dtype(x.dtype()), x.device()};
    Tensor shares = Tensor::empty(x.shape(), wide);
    Tensor loss = Tensor::empty({}, wide);
    kernels::cross_entropy(x, labels, smoothing, loss, shares);
    probabilities = shares;
    return loss;
  }
  Gradients backward(const Tensor& dloss, const Needs&) const {
    Tensor dx = Tensor::empty(probabilities.shape(), x_options);
    kernels::cross_entropy_backward(probabilities, labels, smoothing, dloss, dx);
    return {dx};
  }
};

struct MeanSquaredError {
  Saved target, x;

  Tensor forward(const Tensor& input) {
    check(input.shape() == target.shape() && input.dtype() == target.dtype(), "mse: input ", input.dtype(), " ",
          input.shape(), ", target ", target.dtype(), " ", target.shape(), ", expected equal ones");
    check(input.numel() != 0, "mse: input of shape ", input.shape(), ", expected one element or more to average over");
    x = input;
    target = in_format(target, input.format());
    Tensor loss = Tensor::empty({}, {parameter_dtype(input.dtype()), input.device()});
    kernels::mse(x, target, loss);
    return loss;
  }
  Gradients backward(const Tensor& dloss, const Needs&) const {
    Tensor dx = x.empty_like();
    kernels::mse_backward(x, target, dloss, dx);
    return {dx};
  }
};

struct BinaryCrossEntropy {
  Saved target, x;

  Tensor forward(const Tensor& input) {
    const DType wide = parameter_dtype(input.dtype());
    check(is_floating(input.dtype()) && input.shape() == target.shape() &&
              (target.dtype() == input.dtype() || target.dtype() == wide),
          "binary_cross_entropy_with_logits: logits ", input.dtype(), " ", input.shape(), ", targets ", target.dtype(),
          " ", target.shape(), ", expected one shape, and targets of ", wide);
    check(input.numel() != 0, "binary_cross_entropy_with_logits: logits of shape ", input.shape(),
          ", expected one element or more to average over");
    x = input;
    target = in_format(convert(target.get(), wide).value(), input.format());
    Tensor loss = Tensor::empty({}, {wide, input.device()});
    kernels::binary_cross_entropy(x, target, loss);
    return loss;
  }
  Gradients backward(const Tensor& dloss, const Needs&) const {
    Tensor dx = x.empty_like();
    kernels::binary_cross_entropy_backward(x, target, dloss, dx);
    return {dx};
  }
};

}  // namespace

Variable cross_entropy(const Variable& logits, const Tensor& labels, double smoothing) {
  check(smoothing >= 0 && smoothing < 1, "cross_entropy: smoothing ", smoothing, ", expected [0, 1)");
  return apply(CrossEntropy{.labels = labels, .smoothing = smoothing, .x_options = {}, .probabilities = {}}, logits);
}
Variable mse(const Variable& x, const Tensor& target) { return apply(MeanSquaredError{.target = target, .x = {}}, x); }
Variable binary_cross_entropy_with_logits(const Variable& logits, const Tensor& targets) {
  return apply(BinaryCrossEntropy{.target = targets, .x = {}}, logits);
}

}  // namespace tern
