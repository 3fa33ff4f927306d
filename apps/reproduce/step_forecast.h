#pragma once

#include <vector>

#include "tern/apps/networks/networks.h"
#include "tern/apps/reproduce/engine/experiment.h"
#include "tern/dist/cost/round_time.h"

namespace tern::reproduce {

/// The time of a training step on networks, from a run on one machine: the run says how long ranks compute and code,
/// and dist/cost how long their messages travel.
class StepForecast {
 public:
  /// `run` is a run of `network` with ranks of its own, and `measured` its result. The forecast is of `workers` ranks
  /// that do the same, each with as many samples. Rank 0 sends `step_bytes` of payload in a mean step. Throws
  /// InputError if the flags of `run` are wrong.
  StepForecast(const networks::Network& network, const Run& run, const RunResult& measured, int workers,
               double step_bytes);

  /// Seconds of a mean step. A link without cost gives the time of computation and coding.
  double seconds(const LinkCost& link) const;

 private:
  double computation_ = 0;  ///< seconds of a mean step, with the wait for a slower rank
  double round_steps_ = 1;  ///< steps between exchanges
  std::vector<PlannedMessage> messages_;
};

}  // namespace tern::reproduce
