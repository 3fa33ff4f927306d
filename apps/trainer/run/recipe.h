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

/// Makes the application's model for the chosen data set, with initial values from the seed or from --init. `data` is
/// one of its splits; tern's pictures do without. Throws InputError if the file of --init does not fit. With
/// --init-partial, `copied` receives what was taken from it.
std::unique_ptr<Module> make_model(const Application& application, const TrainSettings& settings,
                                   const Dataset* data = nullptr, PartialCopy* copied = nullptr);

/// The dtype of activations for --precision.
DType activation_dtype(const TrainSettings& settings);

/// Makes the optimizer of the settings for all parameters of `model`, which must outlive it.
std::unique_ptr<Optimizer> make_optimizer(const TrainSettings& settings, Module& model);

/// The learning-rate schedule for a run of `total_steps`. Throws InputError if --warmup or --lr-steps exceed them.
Schedule make_schedule(const TrainSettings& settings, int64_t total_steps);

/// Makes the distributed method of --method around a rank's optimizer `local`. Without a communicator, the rank trains
/// alone. Model, optimizer and communicator must outlive it. Throws InputError if the model cannot be trained by it.
std::unique_ptr<DistributedOptimizer> make_method(const TrainSettings& settings, Module& model, Optimizer& local,
                                                  Communicator* communicator);

}  // namespace tern::trainer
