#pragma once

#include <memory>
#include <string>

#include "tern/apps/trainer/application.h"
#include "tern/apps/trainer/settings.h"
#include "tern/core/dtype.h"
#include "tern/layers/module.h"

namespace tern {

/// The application's model for the chosen data set, with the first values of the seed, or those of --init.
std::unique_ptr<Module> make_model(const Application& application, const TrainSettings& settings);

/// Of activations, as --precision says.
DType activation_dtype(const TrainSettings& settings);

/// Finds the device, tells its libraries what they may do, and sets the threads that compute in this thread's name;
/// `settings.threads` becomes their number, where none was given this process's share of the cores among `local_ranks`.
/// An InputError names the flag.
void prepare_machine(TrainSettings& settings, int local_ranks = 1);

}  // namespace tern
