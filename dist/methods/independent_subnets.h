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

/// What happens to the optimizer's state (momentum, Adam's moments) when a new round draws subnets.
enum class SubnetMomentum : uint8_t {
  travel,  ///< moves with its neuron, f32; the state of shared parameters stays on its rank
  drop,    ///< all state is zero at the start of every round
};

/// The numbers that ranks receive at the start of a round. The receiver has no values to add a coded change to.
enum class SubnetDownload : uint8_t { f32, fp16, bf16 };

/// Independent subnet training (IST; Yuan et al., "Distributed Learning of Neural Networks using Independent Subnet
/// Training", algorithms 1 and 2). A round has `local_steps` steps. At its start the hidden neurons are divided among
/// the ranks, and each rank's model becomes its subnet: the same layers with narrower tensors. At its end the slices
/// return. The tensors that are not cut (parameters and buffers) are averaged in f32. This class rescales
/// nothing: batch normalisation replaces the factor of equation (2), as in section 3.3. All ranks begin with the same
/// model.
///
/// The model may be on any device. The ranks exchange slices through the memory of the CPU.
///
/// `consolidate` makes the model the whole model, as if the round ended there; it sends f32, whatever the codec. The
/// next step continues with the subnets, so that an evaluation changes no later loss. Take a checkpoint after it, on
/// every rank.
class IndependentSubnets final : public DistributedOptimizer {
 public:
  struct Options {
    int64_t local_steps = 1;  ///< J
    uint64_t seed = 1;        ///< seed of the partitions and of the codec
    SubnetExchange exchange = SubnetExchange::peer;
    SubnetMomentum momentum = SubnetMomentum::drop;
    int64_t check_every =
        100;  ///< steps between comparisons of the shared parameters, at the next round's end; 0: none
    std::string codec = "none";           ///< codec of uploads: changes of parameters since the download
    std::vector<CodecEntry> codecs = {};  ///< the caller's codecs that specs can name, beside tern's
    SubnetDownload download = SubnetDownload::f32;
  };
  /// Throws InputError that names a codec that does not fit. Error feedback does not fit, because its residual belongs
  /// to neurons that move to other ranks.
  IndependentSubnets(Module& model, Optimizer& local, Communicator& communicator, const SubnetPlan& plan,
                     const Options& options);

  void begin_step(int64_t step) override;
  void step() override;
  void consolidate() override;

  /// Call it after `consolidate`. Within a round it holds the round's number, this rank's share of the whole model, the
  /// received values and the subnet. Between rounds it is empty, because the model holds everything.
  StateDict state() override;
  void load_state(const StateDict& state, int64_t steps) override;
  bool replicated() const override { return false; }
  ExchangeTimes times() const override;

 private:
  void begin_round(int64_t round);
  void end_round();
  void draw(int64_t round);
  void keep_whole();
  /// Model and optimizer state. Shares storage with both.
  StateDict everything();
  /// Those of `all` that are cut, on the CPU: the tensors themselves, or copies if they are on another device.
  StateDict cut_tensors(const StateDict& all) const;
  /// Puts the values into model and optimizer, on their device.
  void install(const StateDict& values);

  Options options_;
  Communicator& communicator_;
  SubnetCuts cuts_;
  std::set<std::string> parameters_;    ///< names
  std::vector<NamedParameter> shared_;  ///< parameters that are not cut
  SubnetStore store_;
  std::unique_ptr<GradientCodec> codec_, download_;  ///< null: f32

  int64_t step_ = 0;
  Tensor round_;             ///< i64 []
  SubnetParts parts_;        ///< of this round; empty between rounds
  StateDict received_;       ///< the subnet's parameters as received, if uploads send changes
  bool whole_ = true;        ///< whether the model is the whole model
  StateDict subnet_;         ///< model and optimizer state to continue with, while the model is whole within a round
  double wait_ = 0;          ///< seconds, for averages
  ExchangeTimes of_clones_;  ///< of stores that were made whole within a round
};

}  // namespace tern
