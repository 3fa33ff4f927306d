#pragma once

#include <vector>

#include "tern/dist/comm/communicator.h"
#include "tern/dist/methods/distributed_optimizer.h"
#include "tern/dist/methods/independent_subnets.h"
#include "tern/dist/methods/neuron_deal.h"
#include "tern/dist/methods/subnet_plan.h"

namespace tern {

/// The ranges that `rank` of `ranks` keeps of a model before the first round, for Module::initialize: its part of the
/// neurons. `cuts` must outlive the result.
RangeOf home_ranges(const SubnetCuts& cuts, int rank, int ranks);

/// Throws InputError unless `cuts` are those of one hidden layer that each tensor has along one dimension, because only
/// such a model can be sharded.
void check_sharded_cuts(const SubnetCuts& cuts);

/// Independent subnet training of a model that is larger than a worker: no rank ever holds the whole. It draws the same
/// subnets as IndependentSubnets, and trains them to the same bits. The model of a rank always has its share of the
/// hidden neurons. A new round moves each neuron from the rank that trained it to the rank that trains it next
/// (NeuronDeal). So a round sends half of what IndependentSubnets sends.
///
/// After `consolidate`, the ranks' parts together are the whole model. Layers that multiply by the neurons
/// (InputParallel) add up their products over all ranks, until the next `begin_step`.
class ShardedSubnets final : public DistributedOptimizer {
 public:
  struct Options {
    int64_t local_steps = 1;  ///< J
    uint64_t seed = 1;        ///< seed of the partitions
    SubnetMomentum momentum = SubnetMomentum::drop;
    int64_t check_every = 100;  ///< as in IndependentSubnets
  };
  /// `model` has the tensors of `home_ranges`; `cuts` are those of the whole model. Throws InputError if the cuts or
  /// the layers of the model do not allow to shard it.
  ShardedSubnets(Module& model, Optimizer& local, Communicator& communicator, const SubnetCuts& cuts,
                 const Options& options);

  void begin_step(int64_t step) override;
  void step() override;
  void consolidate() override;
  bool sharded() const override { return true; }
  void bring_home() override;

  bool replicated() const override { return false; }
  /// Call it after `bring_home`. Within a round it holds this rank's own values of what `consolidate` changes; between
  /// rounds it is empty.
  StateDict state() override;
  void load_state(const StateDict& state, int64_t steps) override;
  ExchangeTimes times() const override { return {.wait = wait_}; }

 private:
  void begin_round(int64_t round);
  void deal(const NeuronLists& to, Account account);
  NeuronLists drawn(int64_t round) const;
  StateDict own_values();
  void add_over_ranks(bool add);
  /// Whether the ranks are between the first and the last step of a round.
  bool in_round() const { return steps_ % options_.local_steps != 0; }

  Options options_;
  Communicator& communicator_;
  SubnetCuts cuts_;
  std::vector<NamedParameter> shared_;   ///< parameters that are not cut
  std::vector<InputParallel*> outputs_;  ///< layers that multiply by the neurons

  int64_t steps_ = 0;  ///< steps done
  NeuronLists neurons_;
  bool consolidated_ = false;
  StateDict own_;    ///< what `consolidate` has changed within a round, before
  double wait_ = 0;  ///< seconds
};

}  // namespace tern
