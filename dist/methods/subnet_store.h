#pragma once

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

/// Who keeps the whole model while subnets train. Every rank trains one.
enum class SubnetExchange : uint8_t {
  coordinator,  ///< rank 0 (IST, algorithm 1)
  peer,  ///< rank h the neurons ⌊h·m/n⌋ to ⌊(h+1)·m/n⌋ of each layer: nobody holds, sends or receives it all
};

/// How the tensors that workers have trained come home.
struct SubnetUpload {
  const StateDict* received = nullptr;  ///< of parameters the change since then comes home; null: their values do
  GradientCodec* codec = nullptr;       ///< of changes that leave their rank; null: f32
  uint64_t seed = 0;                    ///< of its draws
  uint32_t step = 0;
  Account account = Account::payload;
};

/// One rank's share of the partitioned tensors of a model and its optimizer. Between rounds every element has one home;
/// subnets go out from there and come back. All ranks call the same methods in the same order. What does not leave its
/// rank stays exact. Owned by IndependentSubnets.
class SubnetStore {
 public:
  SubnetStore(Communicator& communicator, SubnetExchange exchange, const SubnetCuts& cuts);

  /// Takes this rank's share of what is cut among whole tensors of the model and, where it travels, of the optimizer's
  /// state. `parameters`: their names.
  void keep(const StateDict& whole, const std::set<std::string>& parameters);
  /// This rank's subnet, narrow tensors by name. `format` of parameters on their way: null is f32.
  StateDict download(const SubnetParts& parts, GradientCodec* format);
  /// The way back, from the tensors of `download` after training.
  void upload(const SubnetParts& parts, const StateDict& subnet, const SubnetUpload& how);
  /// The whole tensors, on every rank; on the ledger's account of overhead.
  StateDict gather();

  /// This rank's share, sharing storage.
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
  /// What of a tensor one rank keeps and another trains, seen from both.
  struct Meeting {
    TensorSlice at_home, at_worker;
  };
  /// One message for each rank, one after the other, the own one empty.
  struct Leaving {
    std::vector<std::byte> bytes;
    std::vector<int64_t> counts;
  };
  struct Arrived {
    Tensor bytes;
    std::vector<std::span<const std::byte>> from;
  };

  std::pair<int64_t, int64_t> neurons_at(int home, int layer) const;
  Shape share_shape(const Kept& kept, int home) const;
  TensorSlice share_slice(const Kept& kept, int home) const;
  Meeting meeting(const Kept& kept, const SubnetParts& parts, int home, int worker) const;
  Arrived exchange(const Leaving& leaving, Account account);

  Communicator* communicator_;
  SubnetExchange exchange_;
  const SubnetCuts* cuts_;
  std::vector<Kept> kept_;
  ExchangeTimes times_;
};

}  // namespace tern
