#include "tern/dist/methods/own_model.h"

#include "tern/core/stopwatch.h"
#include "tern/dist/codec/fused_gradients.h"
#include "tern/dist/methods/replicas.h"
#include "tern/dist/methods/tensors.h"
#include "tern/kernels/layout.h"

namespace tern {

OwnModel::OwnModel(Module& model) : parameters_(model.trained_parameters()), buffers_(floating_buffers(model)) {}

const std::string& OwnModel::name(size_t i) const {
  return i < parameters_.size() ? parameters_[i].name : buffers_[i - parameters_.size()].name;
}

std::vector<Tensor> OwnModel::values() const {
  std::vector<Tensor> values;
  for (const auto& [name, parameter] : parameters_) values.push_back(parameter->value());
  for (const auto& [name, buffer] : buffers_) values.push_back(*buffer);
  return values;
}

void OwnModel::install(const std::vector<Tensor>& values) {
  const size_t count = parameters_.size();
  for (size_t i = 0; i < count; ++i) parameters_[i].parameter->set_value(values[i]);
  for (size_t i = 0; i < buffers_.size(); ++i) *buffers_[i].buffer = values[count + i];
}

void OwnModel::show_mean(Communicator& communicator, double& wait) {
  if (shows_mean()) return;
  own_ = values();
  FusedGradients message;
  for (const Tensor& value : own_) message.push_back({{}, value});
  FlatTensors sums = FlatTensors::copy(message);
  {
    const Work sum = communicator.all_reduce(sums.whole, Reduction::sum, Account::overhead);
    const Stopwatch waiting(wait);
    sum.wait();
  }
  const std::vector<Tensor> flat = means(std::move(sums), communicator.size());
  std::vector<Tensor> own_formats;
  for (size_t i = 0; i < own_.size(); ++i) {
    own_formats.push_back(Tensor::empty_like(own_[i]));
    kernels::convert(flat[i], own_formats.back());
  }
  install(own_formats);
}

void OwnModel::take_back() {
  if (shows_mean()) install(std::exchange(own_, {}));
}

void OwnModel::add_to(StateDict& state, std::string_view prefix) const {
  for (size_t i = 0; i < own_.size(); ++i) state.add(std::string(prefix) + name(i), own_[i]);
}

void OwnModel::prepare_load(bool shown) { own_ = shown ? clones_of(values()) : std::vector<Tensor>(); }

}  // namespace tern
