#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tern/dist/codec/codec.h"
#include "tern/dist/comm/communicator.h"
#include "tern/dist/methods/distributed_optimizer.h"
#include "tern/dist/methods/subnet_plan.h"
#include "tern/dist/methods/subnet_store.h"

namespace tern {

/// What becomes of the optimizer's state (momentum, Adam's moments) when subnets are drawn anew.
enum class SubnetMomentum : uint8_t {
  travel,  ///< goes with its neuron, f32; that of shared parameters stays on its rank
  drop,    ///< all of it begins at zero in every round
};

/// Independent subnet training (IST; Yuan et al., "Distributed Learning of Neural Networks using Independent Subnet
/// Training", algorithms 1 and 2). A round is `local_steps` steps: at its start the hidden neurons are dealt out and
/// each rank's model becomes its subnet, narrower tensors in the same layers; at its end the slices go home, and what
/// is not cut (parameters and buffers) is averaged in f32. Nothing is rescaled: batch normalisation takes the place of
/// the factor of equation (2), as section 3.3 has it. All ranks begin with the same model.
///
/// `consolidate` shows the whole model as it would be if the round ended there; the next step goes on with the subnets,
/// so that evaluating changes no later loss. A checkpoint is taken after it, on every rank.
class IndependentSubnets final : public DistributedOptimizer {
 public:
  struct Options {
    int64_t local_steps = 1;  ///< J
    uint64_t seed = 1;        ///< of partitions and of the codec
    SubnetExchange exchange = SubnetExchange::coordinator;
    SubnetMomentum momentum = SubnetMomentum::travel;
    int64_t check_every =
        100;  ///< steps between comparisons of the shared parameters, at the next round's end; 0: none
    std::string codec = "none";           ///< of uploads: what parameters have changed by since they were received
    std::vector<CodecEntry> codecs = {};  ///< that specs can name, beside tern's
    std::string download = "none";        ///< parameters on their way out: none (f32), fp16 or bf16
  };
  /// An InputError names a codec that does not fit: a residual of error feedback belongs to neurons that move away.
  IndependentSubnets(Module& model, Optimizer& local, Communicator& communicator, const SubnetPlan& plan,
                     const Options& options);

  void begin_step(int64_t step) override;
  void step() override;
  void consolidate() override;

  /// After `consolidate`. Within a round: the whole model's shares and the subnet as they are; between rounds nothing,
  /// the model says it all.
  StateDict state() override;
  void load_state(const StateDict& state, int64_t steps) override;
  bool replicated() const override { return false; }
  ExchangeTimes times() const override;

 private:
  void begin_round(int64_t round);
  void end_round();
  void draw(int64_t round);
  void keep_whole();
  /// Model and optimizer state, sharing storage.
  StateDict everything();
  void install(const StateDict& values);
  StateDict average_of_the_rest(Account account);

  Options options_;
  Communicator& communicator_;
  SubnetCuts cuts_;
  std::set<std::string> parameters_;    ///< names
  std::vector<NamedParameter> shared_;  ///< those that are not cut
  SubnetStore store_;
  std::unique_ptr<GradientCodec> codec_, download_;  ///< null: f32

  int64_t step_ = 0;
  Tensor round_;        ///< i64 []
  SubnetParts parts_;   ///< of this round; empty between rounds
  StateDict received_;  ///< the subnet as it came, where changes are what goes home
  bool whole_ = true;   ///< the model is
  StateDict subnet_;    ///< of a whole model within a round: model and optimizer as training goes on with them
  double wait_ = 0;     ///< seconds, for averages
};

}  // namespace tern
