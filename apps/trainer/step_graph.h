#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "tern/apps/trainer/batch_feed.h"
#include "tern/core/readback.h"
#include "tern/kernels/recording.h"
#include "tern/layers/module.h"

namespace tern {

/// The forward and backward pass of a training step as one CUDA graph: recorded after a few steps were issued operation
/// by operation, then run again on other batches of that shape. The update that follows is not part of it: its numbers
/// change from step to step. Used by one thread.
class StepGraph {
 public:
  /// What a pass gives, on the device.
  struct Output {
    Tensor loss, logits;
  };
  /// Issues a pass over a batch: its output, and gradients in the model's parameters.
  using Pass = std::function<Output(const FedBatch& batch)>;
  /// Waits for what a step gave, on the CPU; holds until the step after the next begins.
  using Result = std::function<Output()>;

  StepGraph(Module& model, Pass pass) : model_(model), pass_(std::move(pass)) {}

  /// Whether `run` can do this batch's step; where enough steps have come before, it records one. An Error where that
  /// fails; then nothing has changed.
  bool takes(const FedBatch& batch);
  /// Issues step `step` on `batch`.
  Result run(const FedBatch& batch, uint32_t step);

 private:
  struct Readbacks {
    std::unique_ptr<Readback> loss, logits;
  };

  /// A count of the model's that its forward pass keeps on the CPU, where no recording reaches.
  struct Counter {
    int64_t* value;
    int64_t step;  ///< what a pass adds
  };

  void record_pass(const FedBatch& like);

  Module& model_;
  Pass pass_;
  int64_t seen_ = 0;
  FedBatch batch_;  ///< that the graph reads
  Output output_;
  std::vector<std::pair<Parameter*, Tensor>> gradients_;  ///< that it writes
  std::vector<Counter> counters_;
  std::unique_ptr<Recording> recording_;
  std::array<Readbacks, 2> readbacks_;
  size_t turn_ = 0;
};

}  // namespace tern
