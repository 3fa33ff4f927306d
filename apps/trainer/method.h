#pragma once

#include <memory>

#include "tern/apps/trainer/settings.h"
#include "tern/dist/comm/communicator.h"
#include "tern/dist/methods/distributed_optimizer.h"

namespace tern {

/// The --method of training together, around a rank's own optimizer; without a communicator the rank trains alone.
/// Model, optimizer and communicator must outlive it.
std::unique_ptr<DistributedOptimizer> make_method(const TrainSettings& settings, Module& model, Optimizer& local,
                                                  Communicator* communicator);

}  // namespace tern
