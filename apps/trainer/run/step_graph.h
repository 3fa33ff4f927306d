#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "tern/core/readback.h"
#include "tern/kernels/recording.h"
#include "tern/layers/module.h"
#include "tern/trainer/run/batch_feed.h"

namespace tern::trainer {

/// What a training step gives.
struct StepOutput {
  Tensor loss, logits;
};

/// The outputs of steps on their way to the CPU, without waiting for the device. Used by one thread.
class StepOutputs {
 public:
  /// Waits for an output; holds until the step after the next is brought.
  using Arrival = std::function<StepOutput()>;

  explicit StepOutputs(Device device);
  Arrival bring(const StepOutput& output);

 private:
  struct Readbacks {
    std::unique_ptr<Readback> loss, logits;  ///< null on the CPU
  };
  std::array<Readbacks, 2> readbacks_;
  size_t turn_ = 0;
};

/// A training step (forward, backward, update) as one CUDA graph: recorded after a few steps were issued operation by
/// operation, then run again on other batches of that shape. Used by one thread.
class StepGraph {
 public:
  /// Issues a step on a batch: work of the device alone, such as Optimizer::issue_step, without what goes before it.
  using Step = std::function<StepOutput(const FedBatch& batch)>;

  StepGraph(Module& model, Step step) : model_(model), step_(std::move(step)) {}

  /// Whether `run` can do this batch's step; where enough steps have come before, it records one. An Error where that
  /// fails; then nothing has changed.
  bool takes(const FedBatch& batch);
  /// Issues step `step` on `batch`; the parameters' gradients are not to be seen. The output holds until the next.
  const StepOutput& run(const FedBatch& batch, uint32_t step);
  /// Kernels, copies and fills of a recorded step, without the copies of its batch; 0 before one is recorded.
  size_t launches() const { return recording_ ? recording_->launches() : 0; }

 private:
  /// A count of the model's that its forward pass keeps on the CPU, where no recording reaches.
  struct Counter {
    int64_t* value;
    int64_t step;  ///< what a pass adds
  };

  void record_step(const FedBatch& like);

  Module& model_;
  Step step_;
  int64_t seen_ = 0;
  FedBatch batch_;  ///< that the graph reads
  StepOutput output_;
  std::vector<Counter> counters_;
  std::unique_ptr<Recording> recording_;
};

}  // namespace tern::trainer
