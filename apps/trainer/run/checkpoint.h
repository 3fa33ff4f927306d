#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "tern/core/safetensors.h"
#include "tern/dist/comm/contract.h"
#include "tern/dist/methods/distributed_optimizer.h"
#include "tern/layers/module.h"
#include "tern/optim/average.h"
#include "tern/optim/optimizer.h"
#include "tern/trainer/job/pulse.h"
#include "tern/trainer/report/listener.h"
#include "tern/trainer/run/team.h"

namespace tern::trainer {

/// How far a run has come; random numbers and the place in the data follow from it and the settings.
struct RunPlace {
  std::string run;  ///< the run's id
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
};

/// A new run's id, the same on every rank.
std::string make_run_id(const Team& team);

/// What two runs must share so that one goes on from the other's checkpoint, by name: "batch-size" → "64".
Metadata run_identity(const RunStart& run);

/// Throws an InputError where `folder` has checkpoints, which a run without --resume would mix with.
void check_no_run(const std::string& folder);

/// Where a rank writes: rank 0 what all share in `folder` itself, the others what is theirs in a folder below it.
std::filesystem::path checkpoint_folder(const std::string& folder, int rank);

/// Called by every rank of a run. Rank 0's file is written last, once all the others are: it makes the checkpoint
/// count, and names the others' checksums. Not for a step that has a whole checkpoint already: parts of two writings do
/// not fit each other. While this rank writes, `pulse` shows that it is at work.
void write_run(const std::string& folder, const RunStart& run, const RunPlace& place, const RunParts& parts,
               const Team& team, const Pulse& pulse);

/// Loads the newest checkpoint in `folder`, which all ranks see. An InputError says that there is none, or names the
/// first flag by which the two runs differ, or the file that is not this rank's part of it, with what was found and
/// what was expected.
RunPlace read_run(const std::string& folder, const RunStart& run, const RunParts& parts, const Team& team);

/// Loads into `model` what an evaluation at the newest checkpoint in `folder` would use: the averages where it has
/// them.
void load_evaluated_model(const std::string& folder, Module& model);

/// What all ranks of a run must agree on: tern itself, every setting that changes the losses or what is exchanged,
/// threads, data, and the model's parameters.
Contract run_contract(const RunStart& run, Module& model, const std::string& data_fingerprint);

/// While one lives, no other run writes into the same checkpoint folder: a lock on the folder, which ends with the
/// process at the latest. Nothing is held on file systems that do not lock folders, as over NFS.
class RunLock {
 public:
  /// Makes the folder where it is not there; where it stays empty it goes with the lock. An InputError where another
  /// run is at work in it.
  explicit RunLock(const std::string& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  std::string folder_;
  bool made_;
  int descriptor_ = -1;
};

}  // namespace tern::trainer
