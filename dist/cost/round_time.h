#pragma once

#include <span>
#include <vector>

#include "tern/core/state_dict.h"
#include "tern/dist/exchange/exchange.h"
#include "tern/dist/exchange/plan.h"
#include "tern/dist/methods/subnet_plan.h"

namespace tern {

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

/// Plans a round of independent subnets under a coordinator. The coordinator, rank 0, keeps the whole of `model`, and
/// of `optimizer` if the optimizer state travels. It cuts and sends every other rank's slices, and takes them back. All
/// ranks average the tensors of the model that are not cut. All is f32. The plan counts the elements that are cut out
/// and put back.
ExchangePlan plan_subnet_round(const SubnetCuts& cuts, const StateDict& model, const StateDict& optimizer, int ranks);

}  // namespace tern
