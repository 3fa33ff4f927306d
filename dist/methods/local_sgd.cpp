#include "tern/dist/methods/local_sgd.h"

#include "tern/core/error.h"
#include "tern/dist/exchange/coded.h"
#include "tern/dist/methods/replicas.h"
#include "tern/kernels/elementwise.h"

namespace tern {
namespace {

constexpr std::string_view kCodec = "codec.", kOwn = "own.", kBase = "base.";

std::vector<AveragedTensor> tensors_of(Module& model) {
  std::vector<AveragedTensor> tensors = averaged_parameters(model, "local-sgd");
  for (const auto& [name, buffer] : floating_buffers(model)) tensors.push_back({name, buffer->numel(), false});
  return tensors;
}

std::vector<Tensor> clones_of(std::span<const Tensor> tensors) {
  std::vector<Tensor> clones;
  for (const Tensor& tensor : tensors) clones.push_back(tensor.clone());
  return clones;
}

}  // namespace

LocalSgd::LocalSgd(Module& model, Optimizer& local, Communicator& communicator, const Options& options)
    : DistributedOptimizer(model, local),
      communicator_(communicator),
      options_(options),
      parameters_(model.trained_parameters()),
      buffers_(floating_buffers(model)),
      averaging_(communicator, tensors_of(model), options.averaging) {
  check_input(options.local_steps > 0, "local-sgd: ", options.local_steps, " local steps, expected 1 or more");
  check_input(!options.averaging.overlap, "local-sgd: nothing is sent during backward that could overlap it");
  check_input(!options.averaging.stale, "local-sgd: a round ends with its own exchange, not with the last round's");
}

void LocalSgd::begin_step(int64_t step) {
  step_ = step;
  if (!own_.empty()) install(std::exchange(own_, {}));
  if (step % options_.local_steps != 0) {
    check(!base_.empty(), "local-sgd: step ", step, " lies within a round of ", options_.local_steps,
          " steps that was neither begun nor loaded");
    return;
  }
  const std::vector<Tensor> all = values();
  base_ = clones_of(std::span(all).first(parameters_.size()));
}

void LocalSgd::step() {
  check(!base_.empty(), "local-sgd: step without begin_step");
  local_.step();
  if ((step_ + 1) % options_.local_steps == 0) synchronise();
}

void LocalSgd::synchronise() {
  averaging_.begin(step_);
  const size_t count = parameters_.size();
  for (size_t i = 0; i < buffers_.size(); ++i) averaging_.give(count + i, *buffers_[i].buffer);
  for (size_t i = 0; i < count; ++i) {
    Tensor change = Tensor::empty_like(base_[i]);
    kernels::subtract(base_[i], parameters_[i].parameter->value(), change);
    averaging_.give(i, change);
  }
  const std::vector<Tensor> means = averaging_.finish();
  for (size_t i = 0; i < count; ++i) {
    const Tensor& value = parameters_[i].parameter->value();
    Tensor updated = value;
    kernels::subtract(base_[i], means[i].to(value.device()), updated);
  }
  for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i].buffer->copy_from(means[count + i]);
  base_.clear();
  check_after_round(communicator_, parameters_, step_, options_.local_steps, options_.check_every);
}

void LocalSgd::consolidate() {
  if (base_.empty() || !own_.empty()) return;
  own_ = values();
  install(mean_of(own_));
}

std::vector<Tensor> LocalSgd::values() const {
  std::vector<Tensor> values;
  for (const auto& [name, parameter] : parameters_) values.push_back(parameter->value());
  for (const auto& [name, buffer] : buffers_) values.push_back(*buffer);
  return values;
}

void LocalSgd::install(const std::vector<Tensor>& values) {
  const size_t count = parameters_.size();
  for (size_t i = 0; i < count; ++i) parameters_[i].parameter->set_value(values[i]);
  for (size_t i = 0; i < buffers_.size(); ++i) *buffers_[i].buffer = values[count + i];
}

std::vector<Tensor> LocalSgd::mean_of(const std::vector<Tensor>& values) {
  FusedGradients message;
  for (const Tensor& value : values) message.push_back({{}, value});
  FlatTensors sums = FlatTensors::copy(message);
  {
    const Work sum = communicator_.all_reduce(sums.whole, Reduction::sum, Account::overhead);
    const Stopwatch waiting(wait_);
    sum.wait();
  }
  const std::vector<Tensor> flat = means(std::move(sums), communicator_.size());
  std::vector<Tensor> own_formats;
  for (size_t i = 0; i < values.size(); ++i) {
    own_formats.push_back(Tensor::empty_like(values[i]));
    own_formats.back().copy_from(flat[i]);
  }
  return own_formats;
}

StateDict LocalSgd::round_state() const {
  StateDict state;
  const size_t count = parameters_.size();
  const auto name = [&](size_t i) { return i < count ? parameters_[i].name : buffers_[i - count].name; };
  for (size_t i = 0; i < own_.size(); ++i) state.add(std::string(kOwn) + name(i), own_[i]);
  for (size_t i = 0; i < base_.size(); ++i) state.add(std::string(kBase) + name(i), base_[i]);
  return state;
}

StateDict LocalSgd::state() {
  check(base_.empty() || !own_.empty(), "local-sgd: a checkpoint is taken after consolidate");
  StateDict state = round_state();
  for (const auto& [name, tensor] : averaging_.state()) state.add(std::string(kCodec) + name, tensor);
  return state;
}

void LocalSgd::load_state(const StateDict& state, int64_t steps) {
  StateDict round, codec;
  for (const auto& [name, tensor] : state) {
    if (name.starts_with(kCodec))
      codec.add(name.substr(kCodec.size()), tensor);
    else
      round.add(name, tensor);
  }
  own_.clear();
  base_.clear();
  if (steps % options_.local_steps != 0) {
    own_ = clones_of(values());
    base_ = clones_of(std::span(own_).first(parameters_.size()));
  }
  copy_state(round, round_state(), "a round of local SGD");
  averaging_.load_state(codec);
}

}  // namespace tern
