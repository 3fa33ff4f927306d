#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "tern/core/safetensors.h"
#include "tern/dist/comm/contract.h"
#include "tern/dist/methods/distributed_optimizer.h"
#include "tern/dist/methods/subnet_plan.h"
#include "tern/layers/module.h"
#include "tern/optim/average.h"
#include "tern/optim/checkpoint.h"
#include "tern/optim/optimizer.h"
#include "tern/trainer/rank/pulse.h"
#include "tern/trainer/rank/team.h"
#include "tern/trainer/report/listener.h"

namespace tern::trainer {

/// The progress of a run. Random numbers and the position in the data follow from it and the settings.
struct RunPlace {
  std::string run;  ///< the run's id
  int64_t steps = 0;
  double seconds = 0;                            ///< training time
  uint64_t sent_payload = 0, sent_overhead = 0;  ///< bytes that this rank sent
  int64_t whole = -1;                            ///< step of the newest checkpoint that all ranks have written
};

/// The parts of a run whose state changes, on one rank. The trainer owns them.
struct RunParts {
  Module& model;
  Optimizer& optimizer;
  DistributedOptimizer& method;
  ParameterAverage* average = nullptr;
  const SubnetCuts* cuts = nullptr;  ///< of a sharded model, whose neurons are at home in checkpoints; else null
};

/// A random id for a new run, the same on every rank.
std::string make_run_id(const Team& team);

/// The properties that a run must have in common with the checkpoint that it resumes, by name: "batch-size" → "64".
Metadata run_identity(const RunStart& run);

/// Throws InputError if `folder` has checkpoints, because a run without --resume would mix with them.
void check_no_run(const std::string& folder);

/// The folder in which a rank writes: `folder` for rank 0, which writes the common state, and a folder in it for
/// others.
std::filesystem::path checkpoint_folder(const std::string& folder, int rank);

/// Writes a checkpoint. Every rank of a run must call it. Rank 0 writes its file last, after all others have written
/// theirs. Its file makes the checkpoint valid and has the checksums of the other files. If the model is sharded, each
/// rank writes its slice of the model, and rank 0 also an index of the slices. Do not call it for a step that
/// already has a whole checkpoint, because files of two writings do not match. A rank's parts of the last whole
/// checkpoint and of the one before it stay until rank 0 has written its file. `pulse` shows that the rank works while
/// it writes.
void write_run(const std::string& folder, const RunStart& run, const RunPlace& place, const RunParts& parts,
               const Team& team, const Pulse& pulse);

/// Loads the newest checkpoint in `folder`, which all ranks must see. Throws InputError if there is none, if the two
/// runs differ (with the first flag, or the training data), or if a file is not this rank's part (with what it found
/// and expected).
RunPlace read_run(const std::string& folder, const RunStart& run, const RunParts& parts, const Team& team);

/// The model of a checkpoint as an evaluation uses it: with the averages of the parameters if the checkpoint has them.
StateDict evaluated_state(const Checkpoint& checkpoint);

/// Loads into `model` what an evaluation at the newest checkpoint in `folder` uses, as `evaluated_state` says.
void load_evaluated_model(const std::string& folder, Module& model);

/// What all ranks of a run must agree on: tern's version, every setting that changes the losses or the exchange, the
/// number of threads, the data, and the model's parameters.
/// `cuts` are those of a sharded model, of which ranks do not have the same values.
Contract run_contract(const RunStart& run, Module& model, const SubnetCuts* cuts = nullptr);

/// Keeps other runs from writing into the same checkpoint folder. It locks the folder; the lock ends with the process
/// at the latest. File systems that do not lock folders, such as NFS, give no protection.
class RunLock {
 public:
  /// Creates the folder if it is missing, and removes it with the lock if it is still empty. Throws InputError if
  /// another run holds the lock.
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
