#include "tern/dist/cost/round_time.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "tern/core/error.h"
#include "tern/dist/comm/tcp/frame.h"

namespace tern {
namespace {

/// The clock of a rank, and the clock of its cable.
class Timeline {
 public:
  explicit Timeline(const LinkCost& link) : link_(link) {}

  const ExchangeTimes& spent() const { return spent_; }
  double now() const { return now_; }

  /// Starts each message once it is ready, and before it finishes the previous one.
  void run(std::span<const PlannedMessage> messages, std::span<const double> ready) {
    double come = 0;
    for (size_t i = 0; i < messages.size(); ++i) {
      now_ = std::max(now_, ready[i]);
      const double comes = start(messages[i]);
      if (i > 0) finish(messages[i - 1], come);
      come = comes;
    }
    if (!messages.empty()) finish(messages.back(), come);
  }

 private:
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

LinkCost cost_of(const Link& link) {
  const double byte = link.bytes_per_second > 0 ? 1 / link.bytes_per_second : 0;
  return {.hop = std::chrono::duration<double>(link.latency).count() + byte * detail::Frame::kBytes, .byte = byte};
}

ExchangeTimes round_time(std::span<const PlannedMessage> messages, const LinkCost& link) {
  Timeline timeline(link);
  timeline.run(messages, std::vector<double>(messages.size()));
  return timeline.spent();
}

ExchangeTimes overlapped_round_time(std::span<const PlannedMessage> messages, const LinkCost& link,
                                    const OverlappedStep& step) {
  check(messages.size() == step.ready.size(), "overlapped_round_time: ", messages.size(), " messages, expected ",
        step.ready.size(), ", the times at which they are ready");
  std::vector<PlannedMessage> by_one_thread(messages.begin(), messages.end());
  for (PlannedMessage& message : by_one_thread) {
    message.cost.encode *= step.threads;
    message.cost.decode *= step.threads;
  }
  Timeline timeline(link);
  timeline.run(by_one_thread, step.ready);
  const double coding = (timeline.spent().encode + timeline.spent().decode) / step.threads;
  return {.wait = std::max({0.0, timeline.now() - step.compute, coding})};
}

}  // namespace tern
