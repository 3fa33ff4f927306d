#include "tern/dist/cost/round_time.h"

#include <algorithm>
#include <numeric>

namespace tern {
namespace {

/// The clock of a rank, and the clock of its cable.
class Timeline {
 public:
  explicit Timeline(const LinkCost& link) : link_(link) {}

  const ExchangeTimes& spent() const { return spent_; }

  /// Runs all phases before `under_way` and sends that phase's bytes. Returns the time at which they have arrived.
  double start(const PlannedMessage& message) {
    for (size_t i = 0; i < message.plan.under_way; ++i) {
      const double come = send(message, i);
      receive(message, i, come);
    }
    return send(message, message.plan.under_way);
  }
  void finish(const PlannedMessage& message, double come) {
    const size_t first = message.plan.under_way;
    receive(message, first, come);
    for (size_t i = first + 1; i < message.plan.phases.size(); ++i) {
      come = send(message, i);
      receive(message, i, come);
    }
  }

 private:
  double send(const PlannedMessage& message, size_t i) {
    const ExchangePhase& phase = message.plan.phases[i];
    work(message.cost.encode * phase.encoded, spent_.encode);
    cable_ = std::max(cable_, now_) + link_.seconds(phase.wire);
    return cable_;
  }
  void receive(const PlannedMessage& message, size_t i, double come) {
    work(std::max(0.0, come - now_), spent_.wait);
    work(message.cost.decode * message.plan.phases[i].decoded, spent_.decode);
  }
  void work(double seconds, double& account) {
    now_ += seconds;
    account += seconds;
  }

  LinkCost link_;
  double now_ = 0, cable_ = 0;
  ExchangeTimes spent_;
};

}  // namespace

ExchangeTimes round_time(std::span<const PlannedMessage> messages, const LinkCost& link) {
  Timeline timeline(link);
  const PlannedMessage* before = nullptr;
  double come = 0;
  for (const PlannedMessage& message : messages) {
    const double comes = timeline.start(message);
    if (before != nullptr) timeline.finish(*before, come);
    before = &message;
    come = comes;
  }
  if (before != nullptr) timeline.finish(*before, come);
  return timeline.spent();
}

ExchangePlan plan_subnet_round(const SubnetCuts& cuts, const StateDict& model, const StateDict& optimizer, int ranks) {
  const SubnetParts parts = draw_subnets(cuts, ranks, 0, 0);  // the widths are the same in every round
  std::vector<int64_t> elements(static_cast<size_t>(ranks));
  int64_t averaged = 0, counters = 0;
  const auto count = [&](const std::string& name, const Tensor& tensor, bool of_model) {
    const TensorCut* const cut = cuts.find(name);
    for (int rank = 0; cut != nullptr && rank < ranks; ++rank)
      elements[static_cast<size_t>(rank)] += subnet_shape(*cut, tensor.shape(), parts, rank).numel();
    if (cut == nullptr && of_model) (is_floating(tensor.dtype()) ? averaged : counters) += tensor.numel();
  };
  for (const auto& [name, tensor] : model) count(name, tensor, true);
  for (const auto& [name, tensor] : optimizer) count(std::string(kOptimizerPrefix) + name, tensor, false);

  std::vector<int64_t> bytes;
  for (const int64_t n : elements) bytes.push_back(4 * n);
  const auto others = static_cast<double>(std::accumulate(elements.begin() + 1, elements.end(), int64_t{0}));
  const auto own = static_cast<double>(elements.back());
  return {{{.encoded = others, .wire = root_load(bytes), .decoded = own},
           {.encoded = own, .wire = root_load(bytes), .decoded = others},
           {.wire = all_reduce_load(4 * averaged, ranks)},
           {.wire = all_reduce_load(8 * counters, ranks)}}};
}

}  // namespace tern
