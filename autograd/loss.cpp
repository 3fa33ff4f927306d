#include "tern/autograd/functional.h"

#include "tern/autograd/operation.h"
#include "tern/kernels/loss.h"

namespace tern {
namespace {

void check_weights(const Tensor& weights, int64_t classes, DType dtype) {
  check(!weights.defined() || (weights.shape() == Shape{classes} && weights.dtype() == dtype),
        "cross_entropy: weights ", weights.dtype(), " of shape ", weights.shape(), ", expected ", dtype, " of shape [",
        classes, "]");
}

struct CrossEntropy {
  Saved labels, weights;
  double smoothing;
  std::optional<int64_t> ignored_label;
  LossReduction reduction;
  TensorOptions x_options = {};
  Saved probabilities = {}, divisor = {};

  Tensor forward(const Tensor& x) {
    check(x.rank() == 2 && labels.shape() == Shape{x.size(0)} && labels.dtype() == DType::i64,
          "cross_entropy: logits of shape ", x.shape(), ", labels ", labels.dtype(), " of shape ", labels.shape(),
          ", expected [N, C] and i64 [N]");
    check(reduction != LossReduction::mean || x.size(0) != 0, "cross_entropy: logits of shape ", x.shape(),
          ", expected one row or more to average over");
    x_options = x.options();
    const TensorOptions wide{parameter_dtype(x.dtype()), x.device()};
    check_weights(weights, x.size(1), wide.dtype);
    Tensor shares = Tensor::empty(x.shape(), wide), by;
    Tensor loss = Tensor::empty(reduction == LossReduction::none ? labels.shape() : Shape{}, wide);
    if (reduction == LossReduction::mean) by = Tensor::empty({}, {DType::f64, x.device()});
    kernels::cross_entropy(x, targets(), loss, by, shares);
    probabilities = shares;
    divisor = by;
    return loss;
  }
  Gradients backward(const Tensor& dloss, const Needs&) const {
    Tensor dx = Tensor::empty(probabilities.shape(), x_options);
    kernels::cross_entropy_backward(probabilities, targets(), dloss, divisor, dx);
    return {dx};
  }

 private:
  kernels::LabelTargets targets() const { return {labels, smoothing, weights, ignored_label}; }
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
  Saved target;
  bool is_mean;  ///< or one loss for each element
  Saved x = {};

  Tensor forward(const Tensor& input) {
    const DType wide = parameter_dtype(input.dtype());
    check(is_floating(input.dtype()) && input.shape() == target.shape() &&
              (target.dtype() == input.dtype() || target.dtype() == wide),
          "binary_cross_entropy_with_logits: logits ", input.dtype(), " ", input.shape(), ", targets ", target.dtype(),
          " ", target.shape(), ", expected one shape, and targets of ", wide);
    check(!is_mean || input.numel() != 0, "binary_cross_entropy_with_logits: logits of shape ", input.shape(),
          ", expected one element or more to average over");
    x = input;
    target = in_format(convert(target.get(), wide).value(), input.format());
    Tensor loss = is_mean ? Tensor::empty({}, {wide, input.device()})
                          : Tensor::empty(input.shape(), {wide, input.device(), input.format()});
    kernels::binary_cross_entropy(x, target, loss);
    return loss;
  }
  Gradients backward(const Tensor& dloss, const Needs&) const {
    Tensor dx = x.empty_like();
    kernels::binary_cross_entropy_backward(x, target, dloss, dx);
    return {dx};
  }
};

/// A target in the dtype of its loss, as a constant.
Variable constant(const Tensor& target, DType dtype) { return convert(target, dtype); }

void check_targets(const char* operation, const Variable& x, const Tensor& target) {
  check(x.shape() == target.shape() && x.value().dtype() == target.dtype(), operation, ": input ", x.value().dtype(),
        " ", x.shape(), ", target ", target.dtype(), " ", target.shape(), ", expected equal ones");
}

Variable reduced(const char* operation, const Variable& losses, LossReduction reduction) {
  if (reduction == LossReduction::none) return losses;
  if (reduction == LossReduction::sum) return sum(losses);
  check(losses.shape().numel() != 0, operation, ": input of shape ", losses.shape(),
        ", expected one element or more to average over");
  return mean(losses);
}

/// cross_entropy of rows of logits [N, C], in the dtype of the loss, and probabilities [N, C].
Variable of_probabilities(const Variable& logits, const Tensor& probabilities, const CrossEntropyOptions& options) {
  check(!options.ignored_label, "cross_entropy: an ignored label beside probabilities, expected labels");
  const auto classes = static_cast<double>(logits.shape()[1]);
  Variable targets = constant(probabilities, logits.value().dtype());
  if (options.smoothing > 0) targets = targets * (1 - options.smoothing) + options.smoothing / classes;
  check_weights(options.weights, logits.shape()[1], logits.value().dtype());
  if (options.weights.defined()) targets = targets * options.weights;
  return reduced("cross_entropy", -sum(targets * log_softmax(logits), {1}), options.reduction);
}

}  // namespace

Variable cross_entropy(const Variable& logits, const Tensor& targets, const CrossEntropyOptions& options) {
  const double smoothing = options.smoothing;
  check(smoothing >= 0 && smoothing < 1, "cross_entropy: smoothing ", smoothing, ", expected [0, 1)");
  const Shape& shape = logits.shape();
  const bool by_label = targets.dtype() == DType::i64;
  if (shape.rank() == 1) {
    const Variable loss = cross_entropy(unsqueeze(logits, 0), unsqueeze(targets, 0).value(), options);
    return options.reduction == LossReduction::none ? squeeze(loss, 0) : loss;
  }
  if (shape.rank() > 2) {  // the classes become the last dimension
    std::vector<int> order = {0};
    for (int d = 2; d < shape.rank(); ++d) order.push_back(d);
    order.push_back(1);
    const Variable last = permute(logits, order);
    const Shape places(std::span(last.shape().begin(), last.shape().end() - 1));
    check(targets.shape() == (by_label ? places : shape), "cross_entropy: logits of shape ", shape, ", targets ",
          targets.dtype(), " of shape ", targets.shape(), ", expected i64 ", places, " or probabilities of shape ",
          shape);
    const Tensor rows = by_label ? targets.reshape({targets.numel()})
                                 : reshape(permute(targets, order), {places.numel(), shape[1]}).value();
    const Variable loss = cross_entropy(reshape(last, {places.numel(), shape[1]}), rows, options);
    return options.reduction == LossReduction::none ? reshape(loss, places) : loss;
  }
  if (by_label)
    return apply(CrossEntropy{.labels = targets,
                              .weights = options.weights,
                              .smoothing = smoothing,
                              .ignored_label = options.ignored_label,
                              .reduction = options.reduction},
                 logits);
  check(shape.rank() == 2 && targets.shape() == shape, "cross_entropy: logits of shape ", shape, ", targets ",
        targets.dtype(), " of shape ", targets.shape(), ", expected [N, C], and i64 [N] or probabilities [N, C]");
  return of_probabilities(convert(logits, parameter_dtype(logits.value().dtype())), targets, options);
}
Variable mse(const Variable& x, const Tensor& target, LossReduction reduction) {
  if (reduction == LossReduction::mean) return apply(MeanSquaredError{.target = target, .x = {}}, x);
  check_targets("mse", x, target);
  const DType wide = parameter_dtype(x.value().dtype());
  const Variable distance = convert(x, wide) - constant(target, wide);
  return reduced("mse", distance * distance, reduction);
}
Variable l1(const Variable& x, const Tensor& target, LossReduction reduction) {
  check_targets("l1", x, target);
  const DType wide = parameter_dtype(x.value().dtype());
  return reduced("l1", abs(convert(x, wide) - constant(target, wide)), reduction);
}
Variable binary_cross_entropy_with_logits(const Variable& logits, const Tensor& targets, LossReduction reduction) {
  const Variable loss =
      apply(BinaryCrossEntropy{.target = targets, .is_mean = reduction == LossReduction::mean}, logits);
  return reduction == LossReduction::sum ? sum(loss) : loss;
}

}  // namespace tern
