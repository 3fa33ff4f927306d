#pragma once

#include <span>
#include <vector>

#include "tern/dist/exchange_plan.h"
#include "tern/dist/exchange_times.h"

namespace tern {

/// Seconds that a codec takes for an element on one rank while its neighbours are at work, too.
struct CodecCost {
  double encode = 0, decode = 0;
};

/// A message of a round of `Averaging`.
struct PlannedMessage {
  ExchangePlan plan;
  CodecCost cost;
};

/// What a rank spends on a round whose gradients are all there: `Averaging` starts each message before it finishes the
/// one before, so that one is coded while another travels, and the ranks' cables carry one operation after the other.
ExchangeTimes round_time(std::span<const PlannedMessage> messages, const LinkCost& link);

}  // namespace tern
