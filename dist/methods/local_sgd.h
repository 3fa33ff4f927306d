#pragma once

#include "tern/dist/methods/averaging.h"
#include "tern/dist/methods/distributed_optimizer.h"

namespace tern {

/// Local SGD (Stich, 2019). Each rank trains alone for some steps, with its own optimizer, whose state stays local.
/// Then all ranks' models become their mean. The codec encodes each rank's change since the last synchronisation.
/// Floating-point buffers (batch-norm statistics) are averaged without the codec. Parameters are the same, bit for bit,
/// on all ranks only after each synchronisation. A round begins at each step that is a multiple of `local_steps`.
///
/// `consolidate` makes the model the mean of the ranks' models, and the next step continues with the rank's own model.
/// So neither an evaluation nor a checkpoint changes the training.
class LocalSgd final : public DistributedOptimizer {
 public:
  struct Options {
    int64_t local_steps = 1;  ///< between two synchronisations
    AveragingOptions averaging = {};
    int64_t check_every = 100;  ///< steps between comparisons of parameters, at the next synchronisation; 0: none
  };

  /// Throws InputError if the options do not fit each other or the model.
  LocalSgd(Module& model, Optimizer& local, Communicator& communicator, const Options& options);

  void begin_step(int64_t step) override;
  void step() override;
  /// Within a round the mean is exact (f32), whatever the codec, because the codec's residuals and random numbers
  /// belong to the synchronisations. Its bytes count as overhead.
  void consolidate() override;
  /// Call it after `consolidate`. Holds this rank's residuals. Within a round it also holds this rank's own model, and
  /// the parameters at the start of the round.
  StateDict state() override;
  void load_state(const StateDict& state, int64_t steps) override;
  bool replicated() const override { return false; }
  ExchangeTimes times() const override { return averaging_.times() + ExchangeTimes{.wait = wait_}; }

 private:
  void synchronise();
  /// The parameters, then the floating-point buffers. Shares storage with the model.
  std::vector<Tensor> values() const;
  void install(const std::vector<Tensor>& values);
  std::vector<Tensor> mean_of(const std::vector<Tensor>& values);
  /// The part of `state` without the residuals. Shares storage with this object.
  StateDict round_state() const;

  Communicator& communicator_;
  Options options_;
  std::vector<NamedParameter> parameters_;
  std::vector<NamedBuffer> buffers_;
  Averaging averaging_;
  int64_t step_ = 0;
  std::vector<Tensor> base_;  ///< parameters at the start of the round; empty between rounds
  std::vector<Tensor> own_;   ///< this rank's `values`, while the model is the mean; otherwise empty
  double wait_ = 0;           ///< seconds, for the means of `consolidate`
};

}  // namespace tern
