#include "tern/apps/trainer/step_graph.h"

#include <utility>

namespace tern {
namespace {

constexpr int64_t kStepsBefore = 3;  // in which what is made on first use is made, and engines are timed

/// Counts that the model's forward pass keeps on the CPU, where no recording reaches them.
std::vector<int64_t*> counters(Module& model) {
  std::vector<int64_t*> found;
  for (const auto& [name, buffer] : model.buffers())
    if (buffer->dtype() == DType::i64 && buffer->device().type == DeviceType::cpu)
      found.push_back(buffer->data<int64_t>());
  return found;
}

}  // namespace

bool StepGraph::takes(const FedBatch& batch) {
  if (!recording_ && seen_++ >= kStepsBefore) record_pass(batch);
  return recording_ && batch.images.shape() == batch_.images.shape();
}

void StepGraph::record_pass(const FedBatch& like) {
  batch_ = {Tensor::empty_like(like.images), Tensor::empty_like(like.labels), Tensor::empty_like(like.indices), {}};
  for (Readbacks& readbacks : readbacks_) {
    readbacks.loss = make_readback(like.images.device());
    readbacks.logits = make_readback(like.images.device());
  }
  std::vector<int64_t> counts;
  for (const int64_t* counter : counters(model_)) counts.push_back(*counter);
  const auto restore = [&] {
    const auto places = counters(model_);
    for (size_t i = 0; i < places.size(); ++i) *places[i] = counts[i];
    model_.zero_gradients();
  };
  model_.zero_gradients();
  try {
    recording_ = record(like.images.device(), [this] { output_ = pass_(batch_); });
  } catch (...) {
    restore();
    throw;
  }
  for (const auto& [name, parameter] : model_.parameters()) gradients_.push_back(parameter->gradient());
  restore();
}

StepGraph::Result StepGraph::run(const FedBatch& batch, uint32_t step) {
  batch_.images.copy_from(batch.images);
  batch_.labels.copy_from(batch.labels);
  batch_.indices.copy_from(batch.indices);
  recording_->replay(step);
  for (int64_t* counter : counters(model_)) ++*counter;
  const auto parameters = model_.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i].parameter->set_gradient(gradients_[i]);
  Readbacks& to = readbacks_[std::exchange(turn_, 1 - turn_)];
  to.loss->start(output_.loss);
  to.logits->start(output_.logits);
  return [&to] { return Output{to.loss->wait(), to.logits->wait()}; };
}

}  // namespace tern
