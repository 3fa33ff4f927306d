#include "tern/autograd/functional.h"

#include <algorithm>

#include "tern/autograd/operation.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/layout.h"
#include "tern/kernels/normalization.h"

namespace tern {
namespace {

void check_arguments(const Tensor& x, const kernels::BatchNormParameters& parameters, const Tensor& residual) {
  check(x.rank() == 2 || x.rank() == 4, "batch_norm: input of shape ", x.shape(),
        ", expected [N, C], [N, C, L] or [N, C, H, W]");
  const auto check_parameter = [&](const char* name, const Tensor& parameter) {
    const DType dtype = parameter_dtype(x.dtype());
    check(parameter.shape() == Shape{x.size(1)} && parameter.dtype() == dtype, "batch_norm: input ", x.dtype(),
          " of shape ", x.shape(), ", ", name, " ", parameter.dtype(), " of shape ", parameter.shape(), ", expected ",
          dtype, " of shape [", x.size(1), "]");
  };
  check_parameter("weight", parameters.gamma);
  check_parameter("bias", parameters.beta);
  check_parameter("running mean", parameters.running_mean);
  check_parameter("running variance", parameters.running_variance);
  check(!residual.defined() || (residual.shape() == x.shape() && residual.dtype() == x.dtype()),
        "batch_norm: residual ", residual.dtype(), " of shape ", residual.shape(), ", input ", x.dtype(), " of shape ",
        x.shape(), ", expected equal ones");
}

struct BatchNormTraining {
  BatchNormOptions options;
  Tensor running_mean, running_variance;
  Saved x, y, passed, gamma, mean, inverse_deviation;

  Tensor forward(const Tensor& input, const Tensor& weight, const Tensor& beta, const Tensor& residual) {
    const kernels::BatchNormParameters parameters{weight, beta, running_mean, running_variance};
    check_arguments(input, parameters, residual);
    Tensor result = Tensor::empty_like(input);
    Tensor bits;
    if (options.relu && input.device().type != DeviceType::cpu)
      bits = Tensor::empty({kernels::passed_bytes(input.numel())}, {.dtype = DType::u8, .device = input.device()});
    Tensor batch_mean = Tensor::empty_like(weight), batch_inverse_deviation = Tensor::empty_like(weight);
    const Tensor other = residual.defined() ? in_format(residual, input.format()) : residual;
    kernels::batch_norm_training(input, other, parameters, options, result, bits, batch_mean, batch_inverse_deviation);
    if (options.momentum > 0) {
      running_mean.mark_written();
      running_variance.mark_written();
    }
    x = input;
    gamma = weight;
    mean = batch_mean;
    inverse_deviation = batch_inverse_deviation;
    if (bits.defined())
      passed = bits;
    else if (options.relu)
      y = result;
    return result;
  }
  Gradients backward(const Tensor& dy, const Needs& needs) const {
    Tensor dx = x.empty_like(), dgamma = gamma.empty_like(), dbeta = gamma.empty_like();
    Tensor dresidual = needs[3] ? x.empty_like() : Tensor();
    kernels::batch_norm_backward(dy, {x, y, passed, gamma, mean, inverse_deviation}, options.relu, dx, dgamma, dbeta,
                                 dresidual);
    return {dx, dgamma, dbeta, dresidual};
  }
};

struct BatchNormInference {
  BatchNormOptions options;
  Saved running_mean, running_variance;
  Saved x, y, gamma;

  Tensor forward(const Tensor& input, const Tensor& weight, const Tensor& beta, const Tensor& residual) {
    const kernels::BatchNormParameters parameters{weight, beta, running_mean, running_variance};
    check_arguments(input, parameters, residual);
    x = input;
    gamma = weight;
    Tensor result = Tensor::empty_like(input);
    const Tensor other = residual.defined() ? in_format(residual, input.format()) : residual;
    kernels::batch_norm_inference(input, other, parameters, options, result);
    if (options.relu) y = result;
    return result;
  }
  Gradients backward(Tensor dy, const Needs& needs) const {
    const Tensor masked = options.relu ? relu_gradient(y, std::move(dy)) : dy;
    const Tensor zeros = Tensor::zeros(gamma.shape(), gamma.options());
    Gradients gradients(4);
    Tensor dx = x.empty_like();
    // If mean and beta are 0, the normalisation maps 1 to its slope, gamma / sqrt(variance + epsilon).
    const auto slope = [&](const Tensor& scale, DType dtype) {
      const Tensor one = filled({1, gamma.size(0)}, 1, {dtype, x.options().device});
      return normalize(one, {scale, zeros, zeros, running_variance});
    };
    if (needs[1] || needs[2]) {
      Tensor dgamma = Tensor::zeros(gamma.shape(), gamma.options()),
             dbeta = Tensor::zeros(gamma.shape(), gamma.options()), none;
      const Tensor ones = filled(gamma.shape(), 1, gamma.options());
      const Tensor inverse_deviation = slope(ones, gamma.dtype()).reshape(gamma.shape());
      // The sums are those of training, with other statistics. The dx of training is overwritten below.
      if (dx.numel() != 0)
        kernels::batch_norm_backward(masked, {x, {}, {}, gamma, running_mean, inverse_deviation}, false, dx, dgamma,
                                     dbeta, none);
      gradients[1] = dgamma;
      gradients[2] = dbeta;
    }
    if (needs[0]) {
      kernels::multiply(masked, across_channels(slope(gamma, x.dtype())), dx);
      gradients[0] = dx;
    }
    if (needs[3]) gradients[3] = masked;
    return gradients;
  }

  Tensor normalize(const Tensor& input, const kernels::BatchNormParameters& parameters) const {
    Tensor result = Tensor::empty_like(input);
    kernels::batch_norm_inference(input, {}, parameters, {.epsilon = options.epsilon}, result);
    return result;
  }
  Tensor across_channels(const Tensor& values) const {
    return x.rank() == 4 ? values.reshape({1, -1, 1, 1}) : values.reshape({1, -1});
  }
};

struct LocalResponseNormOperation {
  LocalResponseNormOptions options;
  Saved x, denominator;

  Tensor forward(const Tensor& input) {
    check(input.rank() == 4, "local_response_norm: shape ", input.shape(), ", expected [N, C, ...] of rank 3 to 5");
    check(options.size >= 1, "local_response_norm: size ", options.size, ", expected 1 or more");
    Tensor y = Tensor::empty_like(input), scales = Tensor::empty_like(input);
    kernels::local_response_norm(input, options, y, scales);
    x = input;
    denominator = scales;
    return y;
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dx = x.empty_like();
    kernels::local_response_norm_backward(dy, x, denominator, options, dx);
    return {dx};
  }
};

/// x as rows [R, C]: C elements are normalised together.
struct LayerNormOperation {
  Shape normalized;
  double epsilon;
  Saved x, gamma, mean, inverse_deviation;

  static std::string name() { return "layer_norm"; }
  Tensor forward(const Tensor& input, const Tensor& weight, const Tensor& beta) {
    const Tensor rows = rows_of(input);
    const TensorOptions wide{parameter_dtype(input.dtype()), input.device()};
    const Tensor scales = weight.defined() ? checked("weight", weight, wide.dtype) : constant(1, wide),
                 shifts = beta.defined() ? checked("bias", beta, wide.dtype) : constant(0, wide);
    Tensor y = Tensor::empty(rows.shape(), {input.dtype(), input.device()});
    Tensor means = Tensor::empty({rows.size(0)}, wide), inverses = Tensor::empty({rows.size(0)}, wide);
    kernels::layer_norm(rows, scales, shifts, epsilon, y, means, inverses);
    x = rows;
    gamma = scales;
    mean = means;
    inverse_deviation = inverses;
    return y.reshape(input.shape());
  }
  Gradients backward(const Tensor& dy, const Needs&) const {
    Tensor dx = x.empty_like(), dgamma = gamma.empty_like(), dbeta = gamma.empty_like();
    kernels::layer_norm_backward(rows_of(dy), {x, gamma, mean, inverse_deviation}, dx, dgamma, dbeta);
    return {dx.reshape(dy.shape()), dgamma.reshape(normalized), dbeta.reshape(normalized)};
  }

  Tensor rows_of(const Tensor& tensor) const {
    const Shape& shape = tensor.shape();
    const int first = shape.rank() - normalized.rank();
    check(
        normalized.rank() >= 1 && first >= 0 && std::equal(normalized.begin(), normalized.end(), shape.begin() + first),
        "layer_norm: input of shape ", shape, ", expected ", normalized, " as its last dimensions");
    check(normalized.numel() >= 1, "layer_norm: over ", normalized, ", expected one element or more");
    return in_format(tensor, MemoryFormat::row_major).reshape({shape.numel() / normalized.numel(), normalized.numel()});
  }
  Tensor checked(const char* parameter, const Tensor& values, DType dtype) const {
    check(values.shape() == normalized && values.dtype() == dtype, "layer_norm: ", parameter, " ", values.dtype(),
          " of shape ", values.shape(), ", expected ", dtype, " of shape ", normalized);
    return in_format(values, MemoryFormat::row_major).reshape({normalized.numel()});
  }
  Tensor constant(double value, const TensorOptions& options) const {
    return filled({normalized.numel()}, value, options);
  }
};

/// The state with constants in place of what is undefined.
BatchNormState completed(const Tensor& x, BatchNormState state) {
  check(x.rank() >= 2, "batch_norm: input of shape ", x.shape(), ", expected [N, C], [N, C, L] or [N, C, H, W]");
  const auto constant = [&](double value) {
    return filled({x.size(1)}, value, {parameter_dtype(x.dtype()), x.device()});
  };
  if (!state.gamma.value().defined()) state.gamma = constant(1);
  if (!state.beta.value().defined()) state.beta = constant(0);
  if (!state.running_mean.defined()) state.running_mean = constant(0);
  if (!state.running_variance.defined()) state.running_variance = constant(1);
  return state;
}

template <class Operation>
Variable normalize(const Variable& x, const BatchNormState& state, const BatchNormOptions& options,
                   const Variable& residual) {
  Operation operation;
  operation.options = options;
  operation.running_mean = state.running_mean;
  operation.running_variance = state.running_variance;
  return apply(std::move(operation), x, state.gamma, state.beta, residual);
}

}  // namespace

Variable batch_norm(const Variable& x, const BatchNormState& state, const BatchNormOptions& options, bool training,
                    const Variable& residual) {
  if (x.shape().rank() == 3) {
    const Variable other = residual.value().defined() ? unsqueeze(residual, -1) : residual;
    return squeeze(batch_norm(unsqueeze(x, -1), state, options, training, other), -1);
  }
  check(state.running_mean.defined() == state.running_variance.defined(),
        "batch_norm: one of running mean and running variance, expected both or none");
  const bool of_batch = training || !state.running_mean.defined();
  check(options.epsilon > 0 || (!of_batch && options.epsilon == 0), "batch_norm: epsilon ", options.epsilon,
        ", expected ", of_batch ? "more than 0" : "0 or more");
  const BatchNormState all = completed(x.value(), state);
  if (!state.running_mean.defined()) {
    BatchNormOptions unchanging = options;
    unchanging.momentum = 0;
    return normalize<BatchNormTraining>(x, all, unchanging, residual);
  }
  return training ? normalize<BatchNormTraining>(x, all, options, residual)
                  : normalize<BatchNormInference>(x, all, options, residual);
}

Variable layer_norm(const Variable& x, const Shape& normalized, const Variable& gamma, const Variable& beta,
                    double epsilon) {
  LayerNormOperation operation;
  operation.normalized = normalized;
  operation.epsilon = epsilon;
  return apply(std::move(operation), x, gamma, beta);
}

Variable local_response_norm(const Variable& x, const LocalResponseNormOptions& options) {
  const Shape& shape = x.shape();
  if (shape.rank() == 3) return squeeze(local_response_norm(unsqueeze(x, -1), options), -1);
  if (shape.rank() == 5)
    return reshape(local_response_norm(reshape(x, Shape{shape[0], shape[1], shape[2], shape[3] * shape[4]}), options),
                   shape);
  return apply(LocalResponseNormOperation{.options = options, .x = {}, .denominator = {}}, x);
}

}  // namespace tern
