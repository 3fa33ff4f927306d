#pragma once

#include <cstdint>
#include <string>

#include "tern/apps/trainer/listener.h"
#include "tern/core/safetensors.h"
#include "tern/layers/module.h"
#include "tern/optim/average.h"
#include "tern/optim/optimizer.h"

namespace tern {

/// How far a run has come; random numbers and the place in the data follow from it and the settings.
struct RunPlace {
  int64_t steps = 0;
  double seconds = 0;  ///< of training
};

/// The parts of a run that change as it goes; owned by the trainer.
struct RunParts {
  Module& model;
  Optimizer& optimizer;
  ParameterAverage* average = nullptr;
};

/// What two runs must share so that one goes on from the other's checkpoint, by name: "batch-size" → "64".
Metadata run_identity(const RunStart& run);

/// Throws an InputError where `folder` has checkpoints, which a run without --resume would mix with.
void check_no_run(const std::string& folder);

void write_run(const std::string& folder, const RunStart& run, const RunPlace& place, const RunParts& parts);

/// Loads the newest checkpoint in `folder`. An InputError where there is none, or names the first flag by which the
/// two runs differ.
RunPlace read_run(const std::string& folder, const RunStart& run, const RunParts& parts);

/// Loads into `model` what an evaluation at the newest checkpoint in `folder` would use: the averages where it has
/// them.
void load_evaluated_model(const std::string& folder, Module& model);

}  // namespace tern
