#include "tern/dist/methods/data_parallel.h"

#include "tern/core/error.h"
#include "tern/dist/methods/replicas.h"
#include "tern/kernels/elementwise.h"
#include "tern/optim/optimizer.h"

namespace tern {

DataParallel::DataParallel(Module& model, Optimizer& local, Communicator& communicator, const Options& options)
    : DistributedOptimizer(model, local),
      communicator_(communicator),
      options_(options),
      parameters_(model.trained_parameters()),
      averaging_(communicator, averaged_parameters(model, "data-parallel"), options.averaging) {
  if (!options.averaging.overlap) return;
  for (size_t i = 0; i < parameters_.size(); ++i) parameters_[i].parameter->on_gradient_ready([this, i] { give(i); });
}

DataParallel::~DataParallel() {
  if (!options_.averaging.overlap) return;
  for (const auto& [name, parameter] : parameters_) parameter->on_gradient_ready({});
}

void DataParallel::begin_step(int64_t step) {
  step_ = step;
  averaging_.begin(step);
}

void DataParallel::give(size_t i) {
  const auto& [name, parameter] = parameters_[i];
  Tensor gradient = parameter->gradient();
  check(gradient.defined(), "data-parallel: '", name, "' has no gradient in step ", step_.value_or(-1),
        "; every parameter must take part in every step");
  if (options_.weight_decay_in_gradient != 0 && decays(model_, name)) {
    Tensor decayed = Tensor::empty_like(parameter->value());
    kernels::scale(parameter->value(), options_.weight_decay_in_gradient, decayed);
    kernels::accumulate(gradient, decayed);
    gradient = decayed;
  }
  averaging_.give(i, gradient);
}

void DataParallel::step() {
  check(step_.has_value(), "data-parallel: step without begin_step");
  if (!options_.averaging.overlap)
    for (size_t i = parameters_.size(); i-- > 0;) give(i);
  const std::vector<Tensor> means = averaging_.finish();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& parameter = *parameters_[i].parameter;
    parameter.set_gradient(means[i].to(parameter.value().device()));
  }
  local_.step();
  if (options_.check_every > 0 && *step_ % options_.check_every == 0)
    check_same_parameters(communicator_, parameters_, *step_);
  step_.reset();
}

void DataParallel::consolidate() { broadcast_buffers(communicator_, model_, 0); }

}  // namespace tern
