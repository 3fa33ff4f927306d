#pragma once

#include <memory>
#include <string>

#include "tern/core/dtype.h"
#include "tern/dist/comm/communicator.h"
#include "tern/dist/methods/distributed_optimizer.h"
#include "tern/layers/module.h"
#include "tern/optim/optimizer.h"
#include "tern/optim/schedule.h"
#include "tern/trainer/application.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {

/// The application's model for the chosen data set, with the first values of the seed, or those of --init.
std::unique_ptr<Module> make_model(const Application& application, const TrainSettings& settings);

/// Of activations, as --precision says.
DType activation_dtype(const TrainSettings& settings);

/// The update rule that the settings name, over all parameters of `model`, which must outlive it.
std::unique_ptr<Optimizer> make_optimizer(const TrainSettings& settings, Module& model);

/// The learning rate's course over a run of `total_steps`; an InputError where it goes on beyond them.
Schedule make_schedule(const TrainSettings& settings, int64_t total_steps);

/// The --method of training together, around a rank's own optimizer; without a communicator the rank trains alone.
/// Model, optimizer and communicator must outlive it.
std::unique_ptr<DistributedOptimizer> make_method(const TrainSettings& settings, Module& model, Optimizer& local,
                                                  Communicator* communicator);

}  // namespace tern::trainer
