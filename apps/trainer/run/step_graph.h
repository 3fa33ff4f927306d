#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tern/core/readback.h"
#include "tern/kernels/recording.h"
#include "tern/layers/module.h"
#include "tern/trainer/run/batch_feed.h"

namespace tern::trainer {

/// The output of a training step.
struct StepOutput {
  Tensor loss = {};
  std::vector<Tensor> outputs = {};  ///< see Forward
  Tensor squared_norm = {};          ///< Optimizer::squared_gradient_norm
};

/// Copies outputs of steps to the CPU without waiting for the device: the tensors that are defined. One thread.
class StepOutputs {
 public:
  /// Waits for an output and returns it. The output is valid until the second `bring` after its own.
  using Arrival = std::function<StepOutput()>;

  explicit StepOutputs(Device device) : device_(device) {}
  Arrival bring(const StepOutput& output);

 private:
  Device device_;
  std::array<std::vector<std::unique_ptr<Readback>>, 2> readbacks_;  ///< empty on the CPU; loss, norm, outputs
  size_t turn_ = 0;
};

/// A training step (forward, backward, update), or the part of it before an exchange, as one CUDA graph. It records a
/// step after a few steps were issued operation by operation, when two batches of the same shapes come one after the
/// other. Then it replays the step on other batches of these shapes. One thread.
class StepGraph {
 public:
  /// Issues a step on a batch: only work on the device, such as Optimizer::issue_step.
  using Step = std::function<StepOutput(const DeviceBatch& batch)>;
  /// Whether the parameters have the gradients of a step after `run`.
  enum class Gradients : uint8_t { dropped, kept };

  StepGraph(Module& model, Step step, Gradients gradients = Gradients::dropped)
      : model_(model), step_(std::move(step)), gradients_(gradients) {}

  /// Whether `run` can do the step of this batch. Records a step if enough steps have come before and the batch has the
  /// shapes of the batch before; again, if the model is in other memory. Throws Error if recording fails; then nothing
  /// has changed.
  bool takes(const DeviceBatch& batch);
  /// Issues step `step` on `batch`. Output and gradients are valid until the next call.
  const StepOutput& run(const DeviceBatch& batch, uint32_t step);
  /// Number of kernels, copies and fills in a recorded step, without the copies of its batch; 0 before one is recorded.
  size_t launches() const { return recording_ ? recording_->launches() : 0; }

 private:
  /// A counter of the model that its forward pass updates on the CPU, so that it is not part of the recording.
  struct Counter {
    int64_t* value;
    int64_t step;  ///< increment of one step
  };

  using Shapes = std::map<std::string, Shape>;  ///< of the fields of a batch

  void record_step(const DeviceBatch& first);
  /// Where the model's tensors are.
  std::vector<const void*> places() const;

  Module& model_;
  Step step_;
  Gradients gradients_;
  int64_t seen_ = 0;
  Shapes shapes_;                     ///< of the recorded step; before it is recorded, of the last batch
  std::optional<DeviceBatch> batch_;  ///< input of the graph
  StepOutput output_;
  std::vector<Counter> counters_;
  std::vector<const void*> places_;                  ///< that the recorded step uses
  std::vector<std::pair<Parameter*, Tensor>> kept_;  ///< gradients of the recorded step
  std::unique_ptr<Recording> recording_;
};

}  // namespace tern::trainer
