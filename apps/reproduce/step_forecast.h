#pragma once

#include <vector>

#include "tern/apps/reproduce/engine/experiment.h"
#include "tern/dist/cost/round_time.h"
#include "tern/networks/networks.h"

namespace tern::reproduce {

/// The time of a training step on networks, from a run on one machine: the run says how long ranks compute and code,
/// and dist/cost how long their messages travel.
class StepForecast {
 public:
  /// `run` is a run of `network` with ranks of its own, and `measured` its result. The forecast is of `workers` ranks
  /// that do the same, each with as many samples. Rank 0 sends `step_bytes` of payload in a mean step. Throws
  /// InputError if the flags of `run` are wrong, and Error if it has --overlap, --stale or --log-every.
  StepForecast(const networks::Network& network, const Run& run, const RunResult& measured, int workers,
               double step_bytes);

  /// Seconds of a mean step. A link without cost gives the time of computation and coding.
  double seconds(const LinkCost& link) const;

 private:
  /// Steps between exchanges.
  double round_steps() const { return traits_of(method_).every_step ? 1 : static_cast<double>(local_steps_); }

  int workers_;
  TrainingMethod method_ = {};
  int64_t local_steps_ = 0;
  double computation_ = 0;  ///< seconds of a mean step, with the wait for a slower rank
  std::vector<PlannedMessage> messages_;
};

}  // namespace tern::reproduce
