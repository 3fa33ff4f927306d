#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tern/dist/codec/codec.h"
#include "tern/dist/comm/communicator.h"
#include "tern/dist/methods/distributed_optimizer.h"
#include "tern/dist/methods/subnet_plan.h"

namespace tern {

/// Who keeps the whole model while subnets train. Every rank trains one subnet.
enum class SubnetExchange : uint8_t {
  coordinator,  ///< rank 0 (IST, algorithm 1)
  peer,  ///< rank h keeps neurons ⌊h·m/n⌋ to ⌊(h+1)·m/n⌋ of each layer; no rank holds, sends or receives all
};

/// The range of a layer's neurons that rank `home` of `ranks` keeps between rounds, of `neurons`.
NeuronRange neurons_kept_by(int home, int ranks, int64_t neurons, SubnetExchange exchange);

/// How trained tensors return to the ranks that keep them.
struct SubnetUpload {
  const StateDict* received = nullptr;  ///< if set, parameters return as changes since these values; null: as values
  GradientCodec* codec = nullptr;       ///< codec of changes that leave their rank; null: f32
  uint64_t seed = 0;                    ///< seed of the codec's random numbers
  uint32_t step = 0;
  Account account = Account::payload;
};

/// One rank's share of the partitioned tensors of a model and its optimizer. Between rounds exactly one rank keeps each
/// element. It sends subnets out and takes them back. All ranks call the same methods in the same order. Elements that
/// do not leave their rank stay exact. Owned by IndependentSubnets.
class SubnetStore {
 public:
  SubnetStore(Communicator& communicator, SubnetExchange exchange, const SubnetCuts& cuts);

  /// Keeps this rank's share of all cut tensors in `whole`: tensors of the model and, if it travels, the optimizer's
  /// state. `parameters` are the names of the parameters.
  void keep(const StateDict& whole, const std::set<std::string>& parameters);
  /// Returns this rank's subnet, narrow tensors by name. `format` is the format of parameters on the wire; null: f32.
  StateDict download(const SubnetParts& parts, GradientCodec* format);
  /// Takes the tensors of `download` back after training.
  void upload(const SubnetParts& parts, const StateDict& subnet, const SubnetUpload& how);
  /// Returns the whole tensors, on every rank. Counts on the overhead account.
  StateDict gather();

  /// This rank's share. Shares storage with the store.
  StateDict state() const;
  SubnetStore clone() const;
  ExchangeTimes times() const { return times_; }

 private:
  struct Kept {
    std::string name;
    bool parameter;
    TensorCut cut;
    Shape whole;
    Tensor share;
  };
  /// The part of a tensor that one rank keeps and another rank trains: its slice on each of the two.
  struct Meeting {
    TensorSlice at_home, at_worker;
  };
  /// One message for each rank, one after the other. This rank's own message is empty.
  struct Leaving {
    std::vector<std::byte> bytes;
    std::vector<int64_t> counts;
  };
  /// The part of a tensor that comes from a peer: its slice of this rank's tensor, and how it is coded; null: f32.
  struct Coming {
    TensorSlice place;
    Shape shape;
    GradientCodec* codec;
  };
  using SliceComing = std::function<Coming(const Kept& kept, int peer)>;
  struct Arrived {
    Tensor bytes;
    std::vector<std::span<const std::byte>> from;
  };

  NeuronRange neurons_at(int home, int layer) const;
  Shape share_shape(const Kept& kept, int home) const;
  TensorSlice share_slice(const Kept& kept, int home) const;
  Meeting meeting(const Kept& kept, const SubnetParts& parts, int home, int worker) const;
  Arrived exchange(const Leaving& leaving, const SliceComing& coming, Account account);
  /// The bytes that come from each rank. Ranks tell them to each other only if the size of a code varies. A codec's
  /// size varies on all ranks or on none.
  std::vector<int64_t> coming_bytes(const Leaving& leaving, const SliceComing& coming);
  /// The same, from the other ranks.
  std::vector<int64_t> told_bytes(const Leaving& leaving);

  Communicator* communicator_;
  SubnetExchange exchange_;
  const SubnetCuts* cuts_;
  std::vector<Kept> kept_;
  ExchangeTimes times_;
};

/// The mean over all ranks of every tensor of `model` that `cuts` leaves whole, and of counts the largest; new tensors,
/// on the CPU. Adds the seconds of waiting to `wait`.
StateDict average_of_uncut(Module& model, const SubnetCuts& cuts, Communicator& communicator, Account account,
                           double& wait);

}  // namespace tern
