#pragma once

#include <memory>

#include "tern/apps/trainer/settings.h"
#include "tern/layers/module.h"
#include "tern/optim/optimizer.h"
#include "tern/optim/schedule.h"

namespace tern {

/// The update rule that the settings name, over all parameters of `model`, which must outlive it.
std::unique_ptr<Optimizer> make_optimizer(const TrainSettings& settings, Module& model);

/// The learning rate's course over a run of `total_steps`; an InputError where it goes on beyond them.
Schedule make_schedule(const TrainSettings& settings, int64_t total_steps);

}  // namespace tern
