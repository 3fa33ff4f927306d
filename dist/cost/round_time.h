#pragma once

#include <span>
#include <vector>

#include "tern/core/state_dict.h"
#include "tern/dist/exchange/exchange.h"
#include "tern/dist/exchange/plan.h"
#include "tern/dist/methods/subnet_plan.h"

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

/// What ranks do in a round of independent subnets under a coordinator, rank 0, that keeps the whole of `model`, and of
/// `optimizer` where its state travels: it cuts every other rank's slices and sends them, takes them home, and what is
/// not cut of the model is averaged. All is f32. Elements are those that are cut out, and put in place.
ExchangePlan plan_subnet_round(const SubnetCuts& cuts, const StateDict& model, const StateDict& optimizer, int ranks);

}  // namespace tern
