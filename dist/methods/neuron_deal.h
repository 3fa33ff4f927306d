#pragma once

#include <cstdint>
#include <vector>

#include "tern/core/tensor.h"
#include "tern/dist/comm/communicator.h"
#include "tern/dist/methods/subnet_plan.h"

namespace tern {

/// Which neurons of a hidden layer each rank has: [rank], ascending. Every neuron is in one list.
using NeuronLists = std::vector<std::vector<int64_t>>;

/// Each rank has the neurons of `neuron_range`, as with SubnetExchange::peer.
NeuronLists home_neurons(int64_t neurons, int ranks);

/// Moves the neurons of a hidden layer from the ranks that have them to the ranks that shall have them, within the
/// tensors of each rank. Each rank has as many neurons afterwards as before. A tensor travels in pieces of at most
/// 16 MiB, so a rank needs two pieces beside its own tensors, never a copy of them. All ranks make the same deal and
/// move the same tensors in the same order.
class NeuronDeal {
 public:
  NeuronDeal(Communicator& communicator, const NeuronLists& from, const NeuronLists& to);

  /// Before, the indices of x along `dimension`, `block` for each neuron, belong to from[rank]; afterwards to to[rank].
  /// x is f32, row-major, on the CPU. Values stay exact.
  void move(const Tensor& x, int dimension, int64_t block, Account account);

 private:
  struct Piece;
  void exchange(const Tensor& x, const Piece& piece, Account account);

  Communicator& communicator_;
  int64_t most_neurons_ = 0;  ///< of one rank
  std::vector<std::vector<int64_t>> leaving_,
      arriving_;  ///< [rank]: places of neurons that go there or come from there
  Tensor sent_, received_;
};

}  // namespace tern
