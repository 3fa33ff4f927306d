#pragma once

#include <cstdint>

#include "tern/core/state_dict.h"
#include "tern/dist/exchange/exchange.h"
#include "tern/layers/module.h"
#include "tern/optim/optimizer.h"

namespace tern {

/// One rank's part in training a model with others: decorates the rank's own optimizer, so that one training loop
/// serves every method. This base trains alone. Every rank calls the same methods in the same order, from one thread;
/// model, optimizer and communicator belong to the caller and outlive it.
class DistributedOptimizer {
 public:
  DistributedOptimizer(Module& model, Optimizer& local) : model_(model), local_(local) {}
  virtual ~DistributedOptimizer() = default;
  DistributedOptimizer(const DistributedOptimizer&) = delete;
  DistributedOptimizer& operator=(const DistributedOptimizer&) = delete;

  /// Before the forward pass of `step`, counted from 0 through all parts of a resumed run.
  virtual void begin_step(int64_t /*step*/) {}
  /// After `backward`: from this rank's gradients to updated parameters.
  virtual void step() { local_.step(); }
  /// Shows the full model, buffers included, the same on every rank: before evaluation and saving. Training goes on, at
  /// the next `begin_step`, as if this had not been called.
  virtual void consolidate() {}

  /// Whether every rank has the same model and local optimizer after each step: one rank's speak for all.
  virtual bool replicated() const { return true; }
  /// What the next step depends on beside the model and the local optimizer: residuals, the last synchronised values.
  virtual StateDict state() { return {}; }
  /// Copies in a `state()` that was taken when `steps` steps were done. An InputError says what does not fit.
  virtual void load_state(const StateDict& state, int64_t /*steps*/) { copy_state(state, this->state(), "the method"); }
  /// Since construction.
  virtual ExchangeTimes times() const { return {}; }

 protected:
  Module& model_;
  Optimizer& local_;
};

}  // namespace tern
