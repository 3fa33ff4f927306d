#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
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
  /// Waits for an output and returns it. Nobody may overwrite the output on the device until then. Call it before the
  /// second `bring` after its own.
  using Arrival = std::function<StepOutput()>;

  explicit StepOutputs(Device device) : device_(device) {}
  Arrival bring(const StepOutput& output);

 private:
  Device device_;
  std::array<std::vector<std::unique_ptr<Readback>>, 2> readbacks_;  ///< empty on the CPU; loss, norm, outputs
  size_t turn_ = 0;
};

/// Keeps the loss and the norm of steps on a CUDA device, until those of several steps come to the CPU together. One
/// thread.
class KeptOutputs {
 public:
  /// At most `steps` steps come together.
  KeptOutputs(Device device, int64_t steps);
  /// Issues one launch. It can be recorded, and then keeps the output of each replay.
  void keep(const StepOutput& output);
  /// Begins to copy the outputs of the last `count` steps, all since the last call, and does not wait for the device.
  /// At most one more step may be kept before `wait` returns.
  void bring(size_t count);
  /// Waits for them, and returns them in the order of the steps.
  std::vector<StepOutput> wait();

 private:
  Tensor rows_, next_;  ///< see kernels::keep_loss
  std::unique_ptr<Readback> readback_;
  bool has_norms_ = false;
  int64_t first_ = 0;  ///< row of the first step that `wait` returns
  size_t count_ = 0;
};

/// A training step (forward, backward, exchange, update), or the part of it before the exchange, as a CUDA graph, which
/// reads a batch in its own memory: one graph for each of the two batches that a BatchFeed gives in turn. It records a
/// step after a few steps were issued operation by operation, when two batches of the same shapes come one after the
/// other. One thread.
class StepGraph {
 public:
  /// Issues a step on a batch: only work on the device, such as Optimizer::issue_step.
  using Step = std::function<StepOutput(const DeviceBatch& batch)>;
  /// Whether the parameters have the gradients of a step after `run`.
  enum class Gradients : uint8_t { dropped, kept };

  /// Tells the other ranks whether this rank has recorded a step, and returns whether all have.
  using Agree = std::function<bool(bool recorded)>;

  /// With `agree`, all ranks record a step or none: NCCL asks for it. Then all must call `takes` with batches of the
  /// same shapes.
  StepGraph(Module& model, Step step, Gradients gradients = Gradients::dropped, Agree agree = {});

  /// Whether `run` can do the step of this batch. Records a step on its memory if there is none, enough steps have come
  /// before and the batch has the shapes of the batch before; again, if the model is in other memory. Makes the copies
  /// of parameters current, because a recorded step reads them as they are. Throws Error if recording fails, on this
  /// rank or on another that agrees; then nothing has changed.
  bool takes(const DeviceBatch& batch);
  /// Issues step `step` on `batch`, which `takes` takes. Output and gradients are valid until the next call with a
  /// batch in the same memory. Marks what the step has written of the model's parameters and their copies.
  const StepOutput& run(const DeviceBatch& batch, uint32_t step);
  /// Number of kernels, copies and fills in a recorded step; 0 before one is recorded.
  size_t launches() const { return recorded_.empty() ? 0 : recorded_.back().recording->launches(); }

 private:
  /// A counter of the model that its forward pass updates on the CPU, so that it is not part of the recording.
  struct Counter {
    int64_t* value;
    int64_t step;  ///< increment of one step
  };

  /// A step on the memory of a batch.
  struct Recorded {
    Batch batch;
    StepOutput output = {};
    std::vector<Counter> counters = {};
    std::vector<std::pair<Parameter*, Tensor>> gradients = {};  ///< empty if they are dropped
    std::vector<Tensor> written = {};                           ///< parameters and copies that the step writes
    std::unique_ptr<Recording> recording = nullptr;
  };
  using Shapes = std::map<std::string, Shape>;  ///< of the fields of a batch

  const Recorded* recorded_on(const Batch& batch) const;
  void record_step(const DeviceBatch& batch);
  /// The memory of the model's parameters, of their copies and of its buffers.
  std::vector<const void*> places() const;

  Module& model_;
  Step step_;
  Gradients gradients_;
  Agree agree_;
  int64_t seen_ = 0;
  Shapes shapes_;                   ///< of the recorded steps; before one is recorded, of the last batch
  std::vector<Recorded> recorded_;  ///< at most two, the later one last; they share the memory of what is not an output
  std::vector<Parameter*> parameters_;
  std::vector<const Tensor*> buffers_;
  std::vector<const void*> places_;  ///< in the recorded steps
};

}  // namespace tern::trainer
