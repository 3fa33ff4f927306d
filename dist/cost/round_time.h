#pragma once

#include <span>
#include <vector>

#include "tern/dist/comm/link.h"
#include "tern/dist/exchange/exchange.h"
#include "tern/dist/exchange/plan.h"

namespace tern {

/// The cost of a message on `link`, with the frame around it.
LinkCost cost_of(const Link& link);

/// Seconds that a codec takes per element on one rank, while the other ranks of the machine work, too.
struct CodecCost {
  double encode = 0, decode = 0;
};

/// A message of a round of `Averaging`.
struct PlannedMessage {
  ExchangePlan plan;
  CodecCost cost;
};

/// The time that a rank spends on a round if all gradients are ready at the start. `Averaging` starts each message
/// before it finishes the previous one, so that one message is coded while another travels. A rank's cable carries one
/// operation after the other.
ExchangeTimes round_time(std::span<const PlannedMessage> messages, const LinkCost& link);

/// How a rank computes while a separate thread codes and sends (`AveragingOptions::overlap`).
struct OverlappedStep {
  double compute = 0;         ///< seconds of the rank's own computation
  std::vector<double> ready;  ///< for each message, seconds from the step's begin to its last gradient, rising
  int threads = 1;            ///< threads that compute; `CodecCost` is measured with as many
};
/// The seconds by which a round that overlaps the backward pass makes a step longer, as waiting. One thread codes all
/// messages, each as soon as it is ready, and `threads` threads compute. So a step takes at least the time at which the
/// last message is decoded, and at least the time of all work, computation and coding, on `threads` cores.
ExchangeTimes overlapped_round_time(std::span<const PlannedMessage> messages, const LinkCost& link,
                                    const OverlappedStep& step);

}  // namespace tern
