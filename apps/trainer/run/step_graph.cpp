#include "tern/trainer/run/step_graph.h"

#include <utility>

namespace tern::trainer {

StepOutputs::StepOutputs(Device device) {
  if (device.type == DeviceType::cpu) return;
  for (auto& [loss, logits] : readbacks_) {
    loss = make_readback(device);
    logits = make_readback(device);
  }
}

StepOutputs::Arrival StepOutputs::bring(const StepOutput& output) {
  Readbacks& to = readbacks_[std::exchange(turn_, 1 - turn_)];
  if (!to.loss) return [output] { return output; };
  to.loss->start(output.loss);
  to.logits->start(output.logits);
  return [&to] { return StepOutput{to.loss->wait(), to.logits->wait()}; };
}

namespace {

constexpr int64_t kStepsBefore = 3;  // they create what is made on first use, and time the engines

}  // namespace

bool StepGraph::takes(const FedBatch& batch) {
  if (!recording_ && seen_++ >= kStepsBefore) record_step(batch);
  return recording_ && batch.images.shape() == batch_.images.shape();
}

void StepGraph::record_step(const FedBatch& like) {
  batch_ = {Tensor::empty_like(like.images), Tensor::empty_like(like.labels), Tensor::empty_like(like.indices), {}};
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
  model_.zero_gradients();
  try {
    recording_ = record(like.images.device(), [this] { output_ = step_(batch_); });
  } catch (...) {
    restore();
    throw;
  }
  restore();
  counters_ = std::move(counters);
}

const StepOutput& StepGraph::run(const FedBatch& batch, uint32_t step) {
  batch_.images.copy_from(batch.images);
  batch_.labels.copy_from(batch.labels);
  batch_.indices.copy_from(batch.indices);
  recording_->replay(step);
  for (const Counter& counter : counters_) *counter.value += counter.step;
  return output_;
}

}  // namespace tern::trainer
