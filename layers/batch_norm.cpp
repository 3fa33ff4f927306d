#include "tern/layers/batch_norm.h"

#include "tern/core/error.h"
#include "tern/layers/initialize.h"

namespace tern {

BatchNorm::BatchNorm(const Options& options)
    : weight(add_parameter("weight", {options.features}, constant(1))),
      bias(add_parameter("bias", {options.features}, constant(0))),
      running_mean(add_buffer("running_mean", {options.features}, 0)),
      running_var(add_buffer("running_var", {options.features}, 1)),
      num_batches_tracked(add_counter("num_batches_tracked")),
      options_{.epsilon = options.epsilon, .momentum = options.momentum, .relu = options.relu} {}

Variable BatchNorm::forward(const Variable& x, const Variable& residual) {
  if (training() && options_.momentum > 0) ++*num_batches_tracked.data<int64_t>();
  return batch_norm(x, {weight.variable(), bias.variable(), running_mean, running_var}, options_, training(), residual);
}

void BatchNorm::set_momentum(double momentum) {
  check(momentum >= 0 && momentum <= 1, "BatchNorm: momentum ", momentum, ", expected [0, 1]");
  options_.momentum = momentum;
}

}  // namespace tern
