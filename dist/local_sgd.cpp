#include "tern/dist/local_sgd.h"

#include "tern/core/error.h"
#include "tern/dist/agreement.h"
#include "tern/dist/buffers.h"
#include "tern/kernels/elementwise.h"

namespace tern {
namespace {

std::vector<AveragedTensor> tensors_of(Module& model) {
  std::vector<AveragedTensor> tensors = averaged_parameters(model, "local-sgd");
  for (const auto& [name, buffer] : floating_buffers(model)) tensors.push_back({name, buffer->numel(), false});
  return tensors;
}

}  // namespace

LocalSgd::LocalSgd(Module& model, Optimizer& local, Communicator& communicator, const Options& options)
    : DistributedOptimizer(model, local),
      communicator_(communicator),
      options_(options),
      parameters_(model.parameters()),
      averaging_(communicator, tensors_of(model), options.averaging) {
  check_input(options.local_steps > 0, "local-sgd: ", options.local_steps, " local steps, expected 1 or more");
  check_input(!options.averaging.overlap, "local-sgd: nothing is sent during backward that could overlap it");
  for (const auto& [name, buffer] : floating_buffers(model)) buffers_.push_back(buffer);
}

void LocalSgd::begin_step(int64_t step) {
  step_ = step;
  if (steps_since_ > 0) return;
  synchronised_.clear();
  for (const auto& [name, parameter] : parameters_) synchronised_.push_back(parameter->value().clone());
}

void LocalSgd::step() {
  check(synchronised_.size() == parameters_.size(), "local-sgd: step without begin_step");
  local_.step();
  if (++steps_since_ == options_.local_steps) synchronise();
}

void LocalSgd::synchronise() {
  averaging_.begin(step_);
  const size_t count = parameters_.size();
  for (size_t i = 0; i < buffers_.size(); ++i) averaging_.give(count + i, *buffers_[i]);
  for (size_t i = 0; i < count; ++i) {
    Tensor change = Tensor::empty_like(synchronised_[i]);
    kernels::subtract(synchronised_[i], parameters_[i].parameter->value(), change);
    averaging_.give(i, change);
  }
  const std::vector<Tensor> means = averaging_.finish();
  for (size_t i = 0; i < count; ++i) {
    const Tensor& value = parameters_[i].parameter->value();
    Tensor updated = value;
    kernels::subtract(synchronised_[i], means[i].to(value.device()), updated);
  }
  for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i]->copy_from(means[count + i]);
  steps_since_ = 0;
  if (options_.check_every == 0 || step_ < next_check_) return;
  check_same_parameters(communicator_, parameters_, step_);
  next_check_ = step_ + options_.check_every;
}

void LocalSgd::consolidate() {
  if (steps_since_ > 0) synchronise();
}

StateDict LocalSgd::state() {
  check(steps_since_ == 0, "local-sgd: state ", steps_since_, " steps after a synchronisation; consolidate first");
  return averaging_.state();
}

void LocalSgd::load_state(const StateDict& state) { averaging_.load_state(state); }

}  // namespace tern
