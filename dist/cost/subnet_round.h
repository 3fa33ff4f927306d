#pragma once

#include "tern/core/state_dict.h"
#include "tern/dist/exchange/plan.h"
#include "tern/dist/methods/subnet_plan.h"
#include "tern/dist/methods/subnet_store.h"

namespace tern {

/// The traffic of a round of independent subnets.
struct SubnetRound {
  SubnetExchange exchange = SubnetExchange::peer;
  int ranks = 1;
  uint64_t seed = 1;  ///< of the partition: under `peer`, a rank's slices that it keeps itself do not travel
};

/// Plans a round of independent subnets: the ranks that keep `model`, and `optimizer` if the optimizer state travels,
/// cut and send the slices, and take them back. All ranks average the tensors of the model that are not cut. All is
/// f32, so no rank has to tell others the sizes of its messages. The plan counts the elements that are cut out and put
/// back.
ExchangePlan plan_subnet_round(const SubnetCuts& cuts, const StateDict& model, const StateDict& optimizer,
                               const SubnetRound& round);

}  // namespace tern
