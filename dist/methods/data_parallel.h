#pragma once

#include <optional>

#include "tern/dist/methods/averaging.h"
#include "tern/dist/methods/distributed_optimizer.h"

namespace tern {

/// Synchronous data-parallel training: in every step each parameter's gradient becomes the mean over the ranks, each of
/// which has its share of the batch, and the local optimizer takes it from there. With the codec `ternary`, TernGrad
/// (algorithm 1); with `qsgd`, QSGD (algorithm 1). Parameters are f32, take part in every step, and stay the same, bit
/// for bit, on all ranks; buffers (batch-norm statistics) are each rank's own until `consolidate` makes them rank 0's.
class DataParallel final : public DistributedOptimizer {
 public:
  struct Options {
    AveragingOptions averaging = {};
    /// Added to gradients, times the parameter, before they are coded, as TernGrad's code does; the local optimizer's
    /// own weight decay acts after averaging.
    double weight_decay_in_gradient = 0;
    int64_t check_every = 100;  ///< steps between comparisons of the ranks' parameters; 0: none
  };

  /// An InputError where options do not fit each other or the model.
  DataParallel(Module& model, Optimizer& local, Communicator& communicator, const Options& options);
  ~DataParallel() override;

  void begin_step(int64_t step) override;
  void step() override;
  void consolidate() override;
  /// This rank's residuals: every rank saves its own.
  StateDict state() override { return averaging_.state(); }
  void load_state(const StateDict& state, int64_t /*steps*/) override { averaging_.load_state(state); }
  ExchangeTimes times() const override { return averaging_.times(); }

 private:
  void give(size_t i);

  Communicator& communicator_;
  Options options_;
  std::vector<NamedParameter> parameters_;
  std::optional<int64_t> step_;  // that has begun
  Averaging averaging_;          // last: its thread uses the rest
};

}  // namespace tern
