#pragma once

#include "tern/dist/methods/distributed_optimizer.h"
#include "tern/dist/methods/own_model.h"

namespace tern {

/// NoLoCo (Kolehmainen et al., arXiv 2506.10911): local SGD in pairs. Each rank i trains θ_i alone for some
/// steps. Then the ranks meet in random pairs, and each takes a step with the means over its pair:
///
///   m_i ← μ m_i + β mean(θ - φ) + β (mean φ - φ_i) = μ m_i + β (mean θ - φ_i);  φ_i ← φ_i + m_i;  θ_i ← φ_i
///
/// φ are the slow weights. So the ranks' models differ, also after a round, and come near to each other over time. With
/// an odd number of ranks, one stays alone. Floating-point buffers become the mean of the pair. A round sends 4n bytes
/// to one rank, for n parameters. The paper sends θ - φ and φ, 8n bytes, because it has a rate for each; with one rate
/// β, their sum θ is enough. All ranks meet after the same step, by one all-to-all, so a slow rank holds up the others.
///
/// `consolidate` makes the model the mean of all ranks' models, and the next step continues with the rank's own model.
class NoLoCo final : public DistributedOptimizer {
 public:
  struct Options {
    int64_t local_steps = 50;  ///< between two meetings
    double lr = 0.7;           ///< β, above 0
    double momentum = 0.5;     ///< μ in [0, 1)
    uint64_t seed = 0;         ///< of the pairs
  };

  /// Throws InputError if the options or the model do not fit.
  NoLoCo(Module& model, Optimizer& local, Communicator& communicator, const Options& options);

  void begin_step(int64_t step) override;
  void step() override;
  /// Before the first step, all ranks have the same model.
  void consolidate() override {
    if (!velocity_.empty()) own_.show_mean(communicator_, times_.wait);
  }
  /// Call it after `consolidate`. Holds this rank's own model, its m, and within a round its φ.
  StateDict state() override;
  void load_state(const StateDict& state, int64_t steps) override;
  bool replicated() const override { return false; }
  ExchangeTimes times() const override { return times_; }

 private:
  /// The rank that this one meets after `step`; this rank itself if it stays alone.
  int partner(int64_t step) const;
  void meet();

  Communicator& communicator_;
  Options options_;
  OwnModel own_;
  int64_t step_ = 0;
  std::vector<Tensor> slow_;      ///< φ; empty between rounds, when the model is φ
  std::vector<Tensor> velocity_;  ///< m
  ExchangeTimes times_;
};

}  // namespace tern
