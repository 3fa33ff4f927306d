#include "tern/layers/normalization.h"

#include "tern/core/error.h"
#include "tern/layers/initialize.h"
#include "tern/layers/module.h"

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

BatchStatistics::BatchStatistics(Module& model) {
  for (const auto& [name, module] : model.modules()) {
    auto* norm = dynamic_cast<BatchNorm*>(module);
    if (norm == nullptr) continue;
    layers_.push_back({norm, norm->momentum(), *norm->num_batches_tracked.data<int64_t>(), norm->training()});
    norm->set_training(true);
    norm->set_momentum(0);
  }
}

BatchStatistics::~BatchStatistics() {
  for (const auto& [norm, momentum, batches, training] : layers_) {
    norm->set_momentum(momentum);
    *norm->num_batches_tracked.data<int64_t>() = batches;  // it counts the batches of training
    norm->set_training(training);
  }
}

int64_t calibrate_batch_statistics(Module& model, const std::function<bool()>& forward_next_batch) {
  const NoGradient no_gradient;
  const EvaluationMode evaluation(model);
  const BatchStatistics by_batch(model);
  for (int64_t batches = 0;; ++batches) {
    for (const auto& [name, module] : model.modules())
      if (auto* norm = dynamic_cast<BatchNorm*>(module)) norm->set_momentum(1.0 / static_cast<double>(batches + 1));
    if (!forward_next_batch()) return batches;
  }
}

}  // namespace tern
