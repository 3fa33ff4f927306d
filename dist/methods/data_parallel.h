#pragma once

#include <optional>

#include "tern/dist/methods/averaging.h"
#include "tern/dist/methods/distributed_optimizer.h"

namespace tern {

/// Synchronous data-parallel training. In every step each rank has its share of the batch. Each parameter's gradient
/// becomes the mean over the ranks, and the local optimizer uses that mean. With the codec `ternary` this is TernGrad
/// (algorithm 1); with `qsgd` it is QSGD (algorithm 1). Parameters are f32 and take part in every step. They stay the
/// same, bit for bit, on all ranks. But with the exchange `powersgd` and with Muon the ranks' machines must be of one
/// kind, and with Muon they must have the same number of threads. Each rank has its own buffers (batch-norm
/// statistics), until `consolidate` copies rank 0's buffers to all ranks.
///
/// With `averaging.stale`, a step uses the means of the step before, whose gradients travelled while this step
/// computed: x(t+1) = x(t) - lr · mean g(t-1), with g(t-1) taken at x(t-1). This is the double buffering of 1-bit SGD
/// (Seide et al., 2014) and QSGD (section 5). The first step has no means yet. It starts its exchange and leaves the
/// parameters and the local optimizer as they are. So each mean is used once, and that of the last step is not used.
class DataParallel final : public DistributedOptimizer {
 public:
  struct Options {
    AveragingOptions averaging = {};
    /// This factor times the parameter is added to each gradient before it is coded, as in TernGrad's code. The local
    /// optimizer's own weight decay acts after averaging.
    double weight_decay_in_gradient = 0;
    int64_t check_every = 100;  ///< steps between comparisons of the ranks' parameters; 0: none
  };

  /// Throws InputError if the options do not fit each other or the model.
  DataParallel(Module& model, Optimizer& local, Communicator& communicator, const Options& options);
  ~DataParallel() override;

  void begin_step(int64_t step) override;
  void step() override;
  bool can_be_recorded() const override { return communicator_.can_be_recorded() && averaging_.can_be_recorded(); }
  void issue_step() override;
  void end_step() override;
  void consolidate() override;
  /// This rank's residuals, and the means that the next step uses. Every rank saves its own, after the same step.
  StateDict state() override;
  void load_state(const StateDict& state, int64_t steps) override;
  void confirm(int64_t steps) const override { averaging_.confirm(steps); }
  ExchangeTimes times() const override { return averaging_.times(); }

 private:
  void give(size_t i);
  void give_all();
  /// Returns the means that this step uses. They are empty in the first step with `stale`.
  std::vector<Tensor> take_means();
  /// Makes the means that this step uses the parameters' gradients. Returns whether it uses any.
  bool set_means();
  /// Waits for the exchange under way, if there is one, and keeps its means.
  void settle();

  Communicator& communicator_;
  Options options_;
  std::vector<NamedParameter> parameters_;
  std::optional<int64_t> step_;  // the step that has begun
  bool under_way_ = false;       // a stale exchange
  std::vector<Tensor> means_;    // of the last exchange, for the next step; empty unless `stale`
  Averaging averaging_;          // last: its thread uses the other members
};

}  // namespace tern
