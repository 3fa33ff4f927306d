#include "tern/layers/normalization.h"

#include "tern/core/error.h"
#include "tern/layers/initialize.h"
#include "tern/layers/module.h"

namespace tern {
namespace {

double checked_momentum(double momentum) {
  check(momentum >= 0 && momentum <= 1, "BatchNorm: momentum ", momentum, ", expected [0, 1]");
  return momentum;
}

}  // namespace

BatchNorm::BatchNorm(const Options& options)
    : weight(options.weight ? &add_parameter("weight", {options.features}, constant(1)) : nullptr),
      bias(options.bias ? &add_parameter("bias", {options.features}, constant(0)) : nullptr),
      running_mean(options.running ? &add_buffer("running_mean", {options.features}, 0) : nullptr),
      running_var(options.running ? &add_buffer("running_var", {options.features}, 1) : nullptr),
      num_batches_tracked(options.running ? &add_counter("num_batches_tracked") : nullptr),
      options_{.epsilon = options.epsilon, .momentum = checked_momentum(options.momentum), .relu = options.relu} {}

Variable BatchNorm::forward(const Variable& x, const Variable& residual) {
  if (num_batches_tracked && training()) ++*num_batches_tracked->data<int64_t>();
  BatchNormOptions options = options_;
  if (averaged_ && training()) options.momentum = 1.0 / static_cast<double>(++*averaged_);
  const BatchNormState state{variable_of(weight), variable_of(bias), running_mean ? *running_mean : Tensor(),
                             running_var ? *running_var : Tensor()};
  return batch_norm(x, state, options, training(), residual);
}

void BatchNorm::set_momentum(double momentum) { options_.momentum = checked_momentum(momentum); }

LayerNorm::LayerNorm(const Options& options)
    : weight(options.weight ? &add_parameter("weight", options.shape, constant(1)) : nullptr),
      bias(options.bias ? &add_parameter("bias", options.shape, constant(0)) : nullptr),
      options_(options) {}

// Narrower parameters normalise fewer elements.
Variable LayerNorm::forward(const Variable& x) {
  const Parameter* parameter = weight ? weight : bias;
  return layer_norm(x, parameter ? parameter->value().shape() : options_.shape, variable_of(weight), variable_of(bias),
                    options_.epsilon);
}

BatchStatistics::BatchStatistics(Module& model, bool averages) {
  for (const auto& [name, module] : model.modules()) {
    auto* norm = dynamic_cast<BatchNorm*>(module);
    if (norm == nullptr || norm->running_mean == nullptr) continue;
    check(norm->num_batches_tracked->defined(), name.empty() ? "model" : name,
          ": no running statistics yet; call initialize(seed) on the model first");
    layers_.push_back({norm, norm->momentum(), *norm->num_batches_tracked->data<int64_t>(), norm->training()});
    norm->set_training(true);
    norm->set_momentum(0);
    if (averages) norm->averaged_ = 0;
  }
}

BatchStatistics::~BatchStatistics() {
  for (const auto& [norm, momentum, batches, training] : layers_) {
    norm->set_momentum(momentum);
    norm->averaged_.reset();
    *norm->num_batches_tracked->data<int64_t>() = batches;  // it counts the batches of training
    norm->set_training(training);
  }
}

int64_t calibrate_batch_statistics(Module& model, const std::function<bool()>& forward_next_batch) {
  const NoGradient no_gradient;
  const EvaluationMode evaluation(model);
  const BatchStatistics averages(model, true);
  int64_t batches = 0;
  while (forward_next_batch()) ++batches;
  return batches;
}

}  // namespace tern
