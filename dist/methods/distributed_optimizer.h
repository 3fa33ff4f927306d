#pragma once

#include <cstdint>

#include "tern/core/state_dict.h"
#include "tern/dist/exchange/exchange.h"
#include "tern/layers/module.h"
#include "tern/optim/optimizer.h"

namespace tern {

/// One rank's part in distributed training. It wraps the rank's own optimizer, so that one training loop serves every
/// method. This base class trains alone. Every rank calls the same methods in the same order, from one thread. The
/// caller owns model, optimizer and communicator, and they outlive it.
class DistributedOptimizer {
 public:
  DistributedOptimizer(Module& model, Optimizer& local) : model_(model), local_(local) {}
  virtual ~DistributedOptimizer() = default;
  DistributedOptimizer(const DistributedOptimizer&) = delete;
  DistributedOptimizer& operator=(const DistributedOptimizer&) = delete;

  /// Call it before the forward pass of `step`. Steps count from 0, through all parts of a resumed run.
  virtual void begin_step(int64_t /*step*/) {}
  /// Call it after `backward`. Turns this rank's gradients into updated parameters.
  virtual void step() { local_.step(); }
  /// Whether the work of `step` on a CUDA device can be recorded, and run again in later steps (kernels/recording.h):
  /// `issue_step` in the recording, and in each step Optimizer::begin_step before its replay and `end_step` after it.
  virtual bool can_be_recorded() const { return false; }
  virtual void issue_step() { local_.issue_step(); }
  virtual void end_step() {}
  /// Makes the model the full model, buffers included, the same on every rank. Call it before evaluation and before
  /// saving. At the next `begin_step`, training continues as if nobody had called it.
  virtual void consolidate() {}

  /// Whether each rank keeps a slice of the model, even after `consolidate`. Then the model on each rank is one part of
  /// the whole model. All ranks together compute the outputs: each runs its part on the same batches, in the same
  /// order.
  virtual bool sharded() const { return false; }
  /// Brings a sharded model into the form in which it is saved: rank r has the r-th part of consecutive neurons. Call
  /// it after `consolidate`, on every rank. At the next `begin_step`, training continues as if nobody had called it.
  virtual void bring_home() {}

  /// Whether every rank has the same model and local optimizer after each step. If so, the values of one rank are
  /// enough.
  virtual bool replicated() const { return true; }
  /// The state that the next step needs beside the model and the local optimizer: residuals, the last synchronised
  /// values.
  virtual StateDict state() { return {}; }
  /// Loads a `state()` that was taken after `steps` steps. Throws InputError that says what does not fit.
  virtual void load_state(const StateDict& state, int64_t /*steps*/) { copy_state(state, this->state(), "the method"); }
  /// Throws InputError that names the tensor if a gradient of a step before `steps` was not finite, and a device had to
  /// encode it: `step` does not wait for the device. Call it, like Communicator::confirm, after a read from the device
  /// and before the use of what was read.
  virtual void confirm(int64_t /*steps*/) const {}
  /// Times since construction.
  virtual ExchangeTimes times() const { return {}; }

 protected:
  Module& model_;
  Optimizer& local_;
};

}  // namespace tern
