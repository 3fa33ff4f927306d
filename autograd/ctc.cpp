#include <algorithm>
#include <vector>

#include "tern/autograd/functional.h"
#include "tern/autograd/operation.h"
#include "tern/kernels/ctc.h"

namespace tern {
namespace {

/// One loss for each sequence.
struct CtcLoss {
  kernels::CtcTargets targets;
  DType dtype = DType::f32;
  Saved shares = {};

  Tensor forward(const Tensor& log_probabilities) {
    kernels::check_ctc_shapes(log_probabilities, targets);
    dtype = log_probabilities.dtype();
    const TensorOptions wide{parameter_dtype(dtype), log_probabilities.device()};
    Tensor losses = Tensor::empty({log_probabilities.size(1)}, wide),
           parts = Tensor::empty(log_probabilities.shape(), wide);
    kernels::ctc_loss(log_probabilities, targets, losses, parts);
    shares = parts;
    return losses;
  }
  Gradients backward(const Tensor& dlosses, const Needs&) const {
    const NoGradient no_gradient;
    const Variable each = reshape(Variable(dlosses), {1, dlosses.size(0), 1});
    return {convert(Variable(shares.get()) * -each, dtype).value()};
  }
};

/// i64 [N] as given, or `all` everywhere, on the device of the labels.
Tensor lengths_or(const Tensor& given, int64_t all, const Tensor& labels) {
  if (given.defined()) return given.to(labels.device());
  return Tensor::full({labels.size(0)}, static_cast<double>(all), labels.options());
}

/// 1/(N · labels of the sequence) for each: PyTorch's mean. A sequence without labels counts as one label.
Variable mean_weights(const Tensor& label_lengths, DType dtype) {
  const auto batch = static_cast<double>(label_lengths.size(0));
  std::vector<double> weights;
  for (const int64_t length : label_lengths.to_vector<int64_t>())
    weights.push_back(1 / (batch * static_cast<double>(std::max<int64_t>(length, 1))));
  return Tensor::from({label_lengths.size(0)}, weights).to(dtype).to(label_lengths.device());
}

}  // namespace

Variable ctc_loss(const Variable& log_probabilities, const Tensor& labels, const CtcOptions& options) {
  const Shape& shape = log_probabilities.shape();
  check(shape.rank() == 3 && labels.rank() == 2, "ctc_loss: log-probabilities of shape ", shape, ", labels of shape ",
        labels.shape(), ", expected [T, N, C] and [N, S]");
  kernels::CtcTargets targets = {.labels = labels,
                                 .input_lengths = lengths_or(options.input_lengths, shape[0], labels),
                                 .label_lengths = lengths_or(options.label_lengths, labels.size(1), labels),
                                 .blank = options.blank,
                                 .zero_infinity = options.zero_infinity};
  const Variable losses = apply(CtcLoss{.targets = targets}, log_probabilities);
  if (options.reduction == LossReduction::none) return losses;
  if (options.reduction == LossReduction::sum) return sum(losses);
  check(shape[1] != 0, "ctc_loss: log-probabilities of shape ", shape,
        ", expected one sequence or more to average over");
  return sum(losses * mean_weights(targets.label_lengths, losses.value().dtype()));
}

}  // namespace tern
