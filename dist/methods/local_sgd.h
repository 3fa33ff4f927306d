#pragma once

#include "tern/dist/methods/averaging.h"
#include "tern/dist/methods/distributed_optimizer.h"

namespace tern {

/// Local SGD (Stich, 2019): each rank trains on its own for some steps, by its own optimizer, whose state stays local;
/// then all ranks' models become their mean. A codec is applied to each rank's change since the last synchronisation;
/// floating-point buffers (batch-norm statistics) are averaged as they are. Parameters are the same, bit for bit, on
/// all ranks after each synchronisation only. A round begins at each step that `local_steps` divides.
///
/// `consolidate` shows the mean of the ranks' models as they are, and the next step goes on with the rank's own. So
/// neither an evaluation nor a checkpoint changes the training.
class LocalSgd final : public DistributedOptimizer {
 public:
  struct Options {
    int64_t local_steps = 1;  ///< between two synchronisations
    AveragingOptions averaging = {};
    int64_t check_every = 100;  ///< steps; ranks' parameters are compared at the next synchronisation; 0: never
  };

  /// An InputError where options do not fit each other or the model.
  LocalSgd(Module& model, Optimizer& local, Communicator& communicator, const Options& options);

  void begin_step(int64_t step) override;
  void step() override;
  /// Within a round the mean is exact (f32), whatever the codec: the codec's residuals and random numbers belong to the
  /// synchronisations. Its bytes count as overhead.
  void consolidate() override;
  /// After `consolidate`. This rank's residuals; within a round also its own model, and the parameters that the round
  /// began with.
  StateDict state() override;
  void load_state(const StateDict& state, int64_t steps) override;
  bool replicated() const override { return false; }
  ExchangeTimes times() const override { return averaging_.times() + ExchangeTimes{.wait = wait_}; }

 private:
  void synchronise();
  /// The parameters, then the floating-point buffers, sharing storage with the model.
  std::vector<Tensor> values() const;
  void install(const std::vector<Tensor>& values);
  std::vector<Tensor> mean_of(const std::vector<Tensor>& values);
  /// What `state` has beside the residuals, sharing storage.
  StateDict round_state() const;

  Communicator& communicator_;
  Options options_;
  std::vector<NamedParameter> parameters_;
  std::vector<NamedBuffer> buffers_;
  Averaging averaging_;
  int64_t step_ = 0;
  std::vector<Tensor> base_;  ///< parameters as the round began; empty between rounds
  std::vector<Tensor> own_;   ///< `values` of this rank, while the model shows the mean; else empty
  double wait_ = 0;           ///< seconds, for means that are shown
};

}  // namespace tern
