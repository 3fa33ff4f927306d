#pragma once

#include "tern/core/state_dict.h"
#include "tern/dist/exchange_plan.h"
#include "tern/dist/subnet_plan.h"

namespace tern {

/// What ranks do in a round of independent subnets under a coordinator, rank 0, that keeps the whole of `model`, and of
/// `optimizer` where its state travels: it cuts every other rank's slices and sends them, takes them home, and what is
/// not cut of the model is averaged. All is f32. Elements are those that are cut out, and put in place.
ExchangePlan plan_subnet_round(const SubnetCuts& cuts, const StateDict& model, const StateDict& optimizer, int ranks);

}  // namespace tern
