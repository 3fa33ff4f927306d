#include "tern/trainer/run/step_graph.h"

#include <utility>

namespace tern::trainer {

StepOutputs::Arrival StepOutputs::bring(const StepOutput& output) {
  if (device_.type == DeviceType::cpu) return [output] { return output; };
  auto& to = readbacks_[std::exchange(turn_, 1 - turn_)];
  const size_t count = output.outputs.size();
  const bool loss = output.loss.defined(), norm = output.squared_norm.defined();
  while (to.size() < 2 + count) to.push_back(make_readback(device_));
  if (loss) to[0]->start(output.loss);
  if (norm) to[1]->start(output.squared_norm);
  for (size_t i = 0; i < count; ++i) to[i + 2]->start(output.outputs[i]);
  return [&to, loss, norm, count] {
    StepOutput arrived;
    if (loss) arrived.loss = to[0]->wait();
    if (norm) arrived.squared_norm = to[1]->wait();
    for (size_t i = 0; i < count; ++i) arrived.outputs.push_back(to[i + 2]->wait());
    return arrived;
  };
}

namespace {

constexpr int64_t kStepsBefore = 3;  // they create what is made on first use, and time the engines

/// A batch of the same shapes on the device, with memory of its own.
DeviceBatch like(const DeviceBatch& batch) {
  NamedTensors fields;
  for (const auto& [name, tensor] : batch.on_device().tensors()) fields.emplace(name, Tensor::empty_like(tensor));
  return {Batch(Tensor::empty_like(batch.indices()), std::move(fields)), {}, batch.precision()};
}

}  // namespace

bool StepGraph::takes(const DeviceBatch& batch) {
  Shapes shapes;
  for (const auto& [name, tensor] : batch.on_device().tensors()) shapes.emplace(name, tensor.shape());
  const bool repeats = shapes == shapes_;
  if (recording_ && places() != places_) recording_.reset();
  if (!recording_) {
    if (seen_++ >= kStepsBefore && repeats) record_step(batch);
    shapes_ = std::move(shapes);
  }
  return recording_ && repeats;
}

std::vector<const void*> StepGraph::places() const {
  std::vector<const void*> places;
  for (const auto& [name, parameter] : model_.parameters()) places.push_back(parameter->value().raw_data());
  for (const auto& [name, buffer] : model_.buffers()) places.push_back(buffer->raw_data());
  return places;
}

void StepGraph::record_step(const DeviceBatch& first) {
  batch_ = like(first);
  std::vector<Counter> counters;
  for (const auto& [name, buffer] : model_.buffers())
    if (buffer->dtype() == DType::i64 && buffer->device().type == DeviceType::cpu)
      counters.push_back({buffer->data<int64_t>(), -*buffer->data<int64_t>()});
  const auto restore = [&] {
    for (auto& [value, step] : counters) {
      step += *value;
      *value -= step;
    }
    model_.zero_gradients();
  };
  kept_.clear();
  model_.zero_gradients();
  try {
    recording_ = record(first.indices().device(), [this] {
      output_ = step_(*batch_);
      if (gradients_ == Gradients::dropped) return;
      for (const auto& [name, parameter] : model_.trained_parameters())
        kept_.emplace_back(parameter, parameter->gradient());
    });
  } catch (...) {
    restore();
    throw;
  }
  restore();
  counters_ = std::move(counters);
  places_ = places();
}

const StepOutput& StepGraph::run(const DeviceBatch& batch, uint32_t step) {
  for (const auto& [name, tensor] : batch.on_device().tensors()) (*batch_)[name].copy_from(tensor);
  batch_->indices().copy_from(batch.indices());
  recording_->replay(step);
  for (const Counter& counter : counters_) *counter.value += counter.step;
  for (const auto& [parameter, gradient] : kept_) parameter->set_gradient(gradient);
  return output_;
}

}  // namespace tern::trainer
