#pragma once

#include "tern/apps/reproduce/ist_costs.h"
#include "tern/apps/reproduce/run.h"

namespace tern {

/// Trains the perceptron of `costs` on random examples by `workers` threads of this process, one step of data parallel
/// training by a ring, which share the batch, and one round of independent subnets with a whole batch for each; what
/// that took, a step and over all workers:
///   "parallel_floats", "ist_floats"  numbers of payload by the ledgers, half of what is received: as many go to the
///                                    workers as come from them
///   "ist_operations"                 4 a weight of each worker's subnet and example
Numbers count_ist_costs(const IstCosts& costs, int workers, const StudyProgress& progress);

}  // namespace tern
