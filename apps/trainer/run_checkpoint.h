#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "tern/apps/trainer/listener.h"
#include "tern/core/safetensors.h"
#include "tern/dist/distributed_optimizer.h"
#include "tern/layers/module.h"
#include "tern/optim/average.h"
#include "tern/optim/optimizer.h"

namespace tern {

/// How far a run has come; random numbers and the place in the data follow from it and the settings.
struct RunPlace {
  int64_t steps = 0;
  double seconds = 0;                            ///< of training
  uint64_t sent_payload = 0, sent_overhead = 0;  ///< bytes, by this rank
};

/// The parts of a run that change as it goes, on one of its ranks; owned by the trainer.
struct RunParts {
  Module& model;
  Optimizer& optimizer;
  DistributedOptimizer& method;
  ParameterAverage* average = nullptr;
  int rank = 0;
};

/// What two runs must share so that one goes on from the other's checkpoint, by name: "batch-size" → "64".
Metadata run_identity(const RunStart& run);

/// Throws an InputError where `folder` has checkpoints, which a run without --resume would mix with.
void check_no_run(const std::string& folder);

/// Where a rank writes: rank 0 what all share in `folder` itself, the others what is theirs in a folder below it.
std::filesystem::path checkpoint_folder(const std::string& folder, int rank);

/// Called by every rank of a run. `wait_for_all` returns once every rank has called it: then rank 0's file, which makes
/// the checkpoint count, is written last.
void write_run(const std::string& folder, const RunStart& run, const RunPlace& place, const RunParts& parts,
               const std::function<void()>& wait_for_all);

/// Loads the newest checkpoint in `folder`, which all ranks see. An InputError where there is none, or names the first
/// flag by which the two runs differ.
RunPlace read_run(const std::string& folder, const RunStart& run, const RunParts& parts);

/// Loads into `model` what an evaluation at the newest checkpoint in `folder` would use: the averages where it has
/// them.
void load_evaluated_model(const std::string& folder, Module& model);

}  // namespace tern
