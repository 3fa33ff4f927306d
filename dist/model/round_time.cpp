#include "tern/dist/model/round_time.h"

#include <algorithm>

namespace tern {
namespace {

/// A rank's clock, and that of its cable.
class Timeline {
 public:
  explicit Timeline(const LinkCost& link) : link_(link) {}

  const ExchangeTimes& spent() const { return spent_; }

  /// Up to the phase that is left under way; returns when its bytes have come.
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

}  // namespace tern
