#pragma once

#include "tern/dist/averaging.h"
#include "tern/dist/distributed_optimizer.h"

namespace tern {

/// Local SGD (Stich, 2019): each rank trains on its own for some steps, by its own optimizer, whose state stays local;
/// then all ranks' models become their mean. A codec is applied to each rank's change since the last synchronisation;
/// floating-point buffers (batch-norm statistics) are averaged as they are. Parameters are the same, bit for bit, on
/// all ranks after each synchronisation only.
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
  /// Synchronises the steps since the last synchronisation, if there are any; the next one is `local_steps` later.
  void consolidate() override;
  /// This rank's residuals, for a model that is consolidated: every rank saves its own, and its own local optimizer.
  StateDict state() override;
  void load_state(const StateDict& state) override;
  bool replicated() const override { return false; }
  ExchangeTimes times() const override { return averaging_.times(); }

 private:
  void synchronise();

  Communicator& communicator_;
  Options options_;
  std::vector<NamedParameter> parameters_;
  std::vector<Tensor*> buffers_;
  Averaging averaging_;
  std::vector<Tensor> synchronised_;  // parameters after the last synchronisation
  int64_t step_ = 0, steps_since_ = 0, next_check_ = 0;
};

}  // namespace tern
