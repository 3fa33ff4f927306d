#include "tern/dist/cost/subnet_round.h"

#include <algorithm>
#include <vector>

namespace tern {
namespace {

/// The elements of a round, by rank that keeps them and rank that trains them.
using Elements = std::vector<std::vector<int64_t>>;

/// Adds the elements of a tensor of shape `whole` that travel from each keeper to each worker.
void add_elements(const TensorCut& cut, const Shape& whole, const SubnetCuts& cuts, const SubnetParts& parts,
                  SubnetExchange exchange, Elements& elements) {
  const auto ranks = static_cast<int>(elements.size());
  const auto layer = static_cast<size_t>(cut.axes[static_cast<size_t>(cut.first_axis())].layer);
  for (int worker = 0; worker < ranks; ++worker) {
    const auto& neurons = parts[layer][static_cast<size_t>(worker)];
    const int64_t all = subnet_shape(cut, whole, parts, worker).numel(), each = all / std::ssize(neurons);
    for (int home = 0; home < ranks; ++home) {
      const auto [begin, end] = neurons_kept_by(home, ranks, cuts.widths()[layer], exchange);
      if (cut.neuron) {
        if (*cut.neuron >= begin && *cut.neuron < end)
          elements[static_cast<size_t>(home)][static_cast<size_t>(worker)] += all;
        continue;
      }
      const auto here = std::ranges::lower_bound(neurons, end) - std::ranges::lower_bound(neurons, begin);
      elements[static_cast<size_t>(home)][static_cast<size_t>(worker)] += each * here;
    }
  }
}

/// The elements that travel between ranks.
struct Travel {
  double sent = 0, received = 0;  ///< by the rank that sends most, and by the one that receives most
  int64_t all = 0;
  double sent_by_first = 0, received_by_first = 0;  ///< by rank 0
};

Travel count_travelling(const Elements& elements) {
  Travel travelling;
  for (size_t rank = 0; rank < elements.size(); ++rank) {
    int64_t sent = 0, received = 0;
    for (size_t other = 0; other < elements.size(); ++other) {
      if (other == rank) continue;
      sent += elements[rank][other];
      received += elements[other][rank];
    }
    travelling.sent = std::max(travelling.sent, static_cast<double>(sent));
    travelling.received = std::max(travelling.received, static_cast<double>(received));
    travelling.all += sent;
    if (rank == 0) {
      travelling.sent_by_first = static_cast<double>(sent);
      travelling.received_by_first = static_cast<double>(received);
    }
  }
  return travelling;
}

}  // namespace

ExchangePlan plan_subnet_round(const SubnetCuts& cuts, const StateDict& model, const StateDict& optimizer,
                               const SubnetRound& round) {
  const int ranks = round.ranks;
  const SubnetParts parts = draw_subnets(cuts, ranks, round.seed, 0);
  Elements elements(static_cast<size_t>(ranks), std::vector<int64_t>(static_cast<size_t>(ranks)));
  int64_t averaged = 0, counters = 0;
  const auto count = [&](const std::string& name, const Tensor& tensor, bool of_model) {
    const TensorCut* const cut = cuts.find(name);
    if (cut != nullptr)
      add_elements(*cut, tensor.shape(), cuts, parts, round.exchange, elements);
    else if (of_model)
      (is_floating(tensor.dtype()) ? averaged : counters) += tensor.numel();
  };
  for (const auto& [name, tensor] : model) count(name, tensor, true);
  for (const auto& [name, tensor] : optimizer) count(std::string(kOptimizerPrefix) + name, tensor, false);

  const Travel travel = count_travelling(elements);
  const auto slices = [&travel](double first) {
    return WireLoad{.busiest = 4 * std::max(travel.sent, travel.received),
                    .hops = travel.all > 0,
                    .sent = 4 * travel.all,
                    .first = 4 * first};
  };
  return {{{.encoded = travel.sent, .wire = slices(travel.sent_by_first), .decoded = travel.received},
           {.encoded = travel.received, .wire = slices(travel.received_by_first), .decoded = travel.sent},
           {.wire = all_reduce_load(4 * averaged, ranks)},
           {.wire = all_reduce_load(8 * counters, ranks)}}};
}

}  // namespace tern
