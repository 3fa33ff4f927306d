#include "tern/dist/methods/neuron_deal.h"

#include <algorithm>
#include <numeric>

#include "tern/core/error.h"
#include "tern/core/parallel.h"

namespace tern {
namespace {

constexpr int64_t kPieceElements = 1 << 22;      // elements of one exchange: 16 MiB
constexpr int64_t kElementsPerThread = 1 << 15;  // elements per thread

int64_t count_of(const NeuronLists& lists) {
  return std::accumulate(lists.begin(), lists.end(), int64_t{0},
                         [](int64_t sum, const auto& list) { return sum + std::ssize(list); });
}

/// The rank of each neuron.
std::vector<int> ranks_of(const NeuronLists& lists) {
  std::vector<int> ranks(static_cast<size_t>(count_of(lists)), -1);
  for (size_t rank = 0; rank < lists.size(); ++rank)
    for (const int64_t neuron : lists[rank]) {
      check(neuron >= 0 && neuron < std::ssize(ranks) && ranks[static_cast<size_t>(neuron)] < 0, "neuron deal: neuron ",
            neuron, " of ", ranks.size(), " is unknown or belongs to two ranks");
      ranks[static_cast<size_t>(neuron)] = static_cast<int>(rank);
    }
  return ranks;
}

/// For each rank, the places in `mine` of the neurons that `other` gives to it.
std::vector<std::vector<int64_t>> places_by_rank(const std::vector<int64_t>& mine, const std::vector<int>& other,
                                                 size_t ranks) {
  std::vector<std::vector<int64_t>> places(ranks);
  for (size_t i = 0; i < mine.size(); ++i)
    places[static_cast<size_t>(other[static_cast<size_t>(mine[i])])].push_back(static_cast<int64_t>(i));
  return places;
}

/// Splits [0, extent) into steps of at most `most`, and calls `body(begin, count)` for each.
template <class Body>
void in_steps(int64_t extent, int64_t most, const Body& body) {
  for (int64_t begin = 0; begin < extent; begin += most) body(begin, std::min(most, extent - begin));
}

/// Most runs of a tensor that is cut by its last dimension have one element.
inline void copy_run(const float* from, int64_t count, float* to) {
  if (count == 1)
    *to = *from;
  else
    std::copy_n(from, count, to);
}

}  // namespace

/// A tensor seen as [outer, neurons, inner], and the part of outer and inner that travels at once.
struct NeuronDeal::Piece {
  int64_t neurons, inner;
  int64_t first_outer, outers, first_inner, inners;

  /// Calls `copy(at, of)` for each run of `inners` elements that belongs to a neuron of `places`: at its offset in the
  /// tensor, and in a message of these neurons alone.
  template <class Copy>
  void visit(const std::vector<int64_t>& places, const Copy& copy) const {
    const int64_t count = std::ssize(places), grain = std::max<int64_t>(1, kElementsPerThread / inners);
    const auto row = [&](int64_t outer, int64_t first, int64_t last) {
      const int64_t at = (first_outer + outer) * neurons, of = outer * count;
      for (int64_t i = first; i < last; ++i)
        copy((at + places[static_cast<size_t>(i)]) * inner + first_inner, (of + i) * inners);
    };
    if (outers == 1) return parallel_for(0, count, grain, [&](int64_t first, int64_t last) { row(0, first, last); });
    parallel_for(0, outers, std::max<int64_t>(1, grain / std::max<int64_t>(1, count)),
                 [&](int64_t first, int64_t last) {
                   for (int64_t outer = first; outer < last; ++outer) row(outer, 0, count);
                 });
  }
};

NeuronLists home_neurons(int64_t neurons, int ranks) {
  NeuronLists lists(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    const auto [begin, end] = neuron_range(rank, ranks, neurons);
    for (int64_t neuron = begin; neuron < end; ++neuron) lists[static_cast<size_t>(rank)].push_back(neuron);
  }
  return lists;
}

NeuronDeal::NeuronDeal(Communicator& communicator, const NeuronLists& from, const NeuronLists& to)
    : communicator_(communicator) {
  const auto ranks = static_cast<size_t>(communicator.size()), me = static_cast<size_t>(communicator.rank());
  check(from.size() == ranks && to.size() == ranks && count_of(from) == count_of(to), "neuron deal: from ", from.size(),
        " ranks to ", to.size(), ", expected ", ranks, " with as many neurons");
  for (size_t rank = 0; rank < ranks; ++rank) {
    check(from[rank].size() == to[rank].size(), "neuron deal: rank ", rank, " has ", from[rank].size(),
          " neurons before and ", to[rank].size(), " afterwards, expected as many");
    most_neurons_ = std::max(most_neurons_, std::ssize(from[rank]));
  }
  leaving_ = places_by_rank(from[me], ranks_of(to), ranks);
  arriving_ = places_by_rank(to[me], ranks_of(from), ranks);
}

void NeuronDeal::move(const Tensor& x, int dimension, int64_t block, Account account) {
  const int64_t neurons = count_of(leaving_), outer = dimension == 0 ? 1 : x.size(0);
  const int64_t inner = x.shape().numel_from(dimension + 1) * block;
  check(x.device().type == DeviceType::cpu, "neuron deal: x is on ", x.device(), ", expected the CPU");
  check(x.dtype() == DType::f32 && x.format() == MemoryFormat::row_major && x.size(dimension) == neurons * block,
        "neuron deal: x is ", x.dtype(), ", ", x.format(), ", ", x.shape(), ", expected f32, row_major, with ",
        neurons * block, " along dimension ", dimension);
  // All ranks take the same steps, whatever their own number of neurons.
  const int64_t inners = std::clamp<int64_t>(kPieceElements / most_neurons_, 1, std::max<int64_t>(1, inner));
  const int64_t outers = std::max<int64_t>(1, kPieceElements / (most_neurons_ * inners));
  in_steps(outer, outers, [&](int64_t first_outer, int64_t outer_count) {
    in_steps(inner, inners, [&](int64_t first_inner, int64_t inner_count) {
      exchange(x, {neurons, inner, first_outer, outer_count, first_inner, inner_count}, account);
    });
  });
  x.mark_written();
}

void NeuronDeal::exchange(const Tensor& x, const Piece& piece, Account account) {
  const int64_t width = piece.outers * piece.inners, elements = piece.neurons * width;
  if (!sent_.defined() || sent_.numel() < elements) {
    sent_ = Tensor::empty({elements});
    received_ = Tensor::empty({elements});
  }
  const auto counts = [&](const std::vector<std::vector<int64_t>>& places) {
    std::vector<int64_t> elements_of;
    for (const auto& list : places) elements_of.push_back(std::ssize(list) * width);
    return elements_of;
  };
  float* const values = x.data<float>();
  const auto each = [&](const std::vector<std::vector<int64_t>>& places, float* message, const auto& copy) {
    for (const auto& list : places) {
      piece.visit(list, [&, message](int64_t at, int64_t of) { copy(values + at, message + of); });
      message += std::ssize(list) * width;
    }
  };
  each(leaving_, sent_.data<float>(), [&](const float* at, float* of) { copy_run(at, piece.inners, of); });
  Tensor arrived = received_.slice(0, elements);
  communicator_.all_to_all(sent_.slice(0, elements), counts(leaving_), arrived, counts(arriving_), account).wait();
  each(arriving_, received_.data<float>(), [&](float* at, const float* of) { copy_run(of, piece.inners, at); });
}

}  // namespace tern
