#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/dist/comm/ledger.h"
#include "tern/dist/methods/distributed_optimizer.h"
#include "tern/kernels/operation_clock.h"
#include "tern/trainer/report/console.h"
#include "tern/trainer/run/team.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {

/// What is known of a run before its first step.
struct RunStart {
  std::string application;
  TrainSettings settings;  ///< threads and epochs resolved
  int64_t training_images = 0;
  int64_t test_images = 0;
  int64_t steps_per_epoch = 0;
  int64_t total_steps = 0;
  int64_t first_step = 0;  ///< steps done before, where a run goes on
  int64_t parameters = 0;  ///< numbers that training changes
  int64_t images_per_step = 0;
  std::string launcher = {};  ///< what told this rank its place, where something did
};

/// One training step, after its update.
struct StepReport {
  int64_t step = 0;   ///< from 1, through all parts of a resumed run
  int64_t epoch = 0;  ///< from 1
  double loss = 0;    ///< mean over the batch
  double lr = 0;
  double seconds = 0;    ///< of training since the start of the run
  double accuracy = 0;   ///< on the batch, before the update; 0 to 1
  Traffic traffic = {};  ///< of this rank in this step
};

struct EvaluationReport {
  int64_t step = 0, epoch = 0;
  double accuracy = 0;  ///< from 0 to 1
  double loss = 0;
};

/// What training together has cost a rank: bytes through all parts of a resumed run, times since this process started.
struct TeamReport {
  Traffic traffic = {};           ///< that this rank has sent
  double sent_payload_mean = 0;   ///< bytes that a rank sends in a step, the mean over all ranks
  double sent_overhead_mean = 0;  ///< on top
  double float_ring_bytes = 0;    ///< that a rank sends in a step of a ring of float32
  double float_ring_ratio = 0;    ///< what this rank would have sent in a ring of float32, over what it has; 0: nothing
  double compute = 0;             ///< seconds of training that the exchange did not take
  ExchangeTimes times;
};

/// The whole run.
struct RunReport {
  double accuracy = 0, loss = 0;  ///< of the last evaluation
  double seconds = 0;             ///< of training
  int64_t steps = 0;
  double images_per_second = 0;                    ///< in training, by this process
  double data_wait = 0;                            ///< share of this process's training time spent waiting for data
  int64_t peak_memory = 0;                         ///< bytes
  std::optional<int64_t> peak_device_memory = {};  ///< bytes of tensors on a device that is not the CPU
  std::optional<TeamReport> team = {};
  std::vector<OperationTime> operations = {};  ///< of training steps, with --profile; the longest first
};

/// Hears what happens in a run, on the rank that leads it, in this order, from the training thread: `started`, then
/// `stepped`, `evaluated` and `checkpointing`, then `ended` where the run was not stopped before. What it writes must
/// survive without `ended`.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void started(const RunStart&) {}
  /// At any time: what a person may want to know of how the run is done.
  virtual void noted(const std::string&) {}
  virtual void stepped(const StepReport&) {}
  virtual void evaluated(const EvaluationReport&) {}
  /// A checkpoint is about to be written. A run that goes on from it does not tell again what was told before, so that
  /// must be durable on return.
  virtual void checkpointing() {}
  virtual void ended(const RunReport&) {}
};

/// Those that the flags ask for: progress on `out`, log, event files, curves. Opens their files.
std::vector<std::unique_ptr<Listener>> make_listeners(const TrainSettings& settings, LineWriter& out);

/// Tells listeners of examples that some rank could not read, again only where there are more.
class UnreadNotes {
 public:
  explicit UnreadNotes(const std::vector<std::unique_ptr<Listener>>& listeners) : listeners_(listeners) {}

  /// All ranks of `team` call it together; the listeners of those that have any hear it.
  void tell_of(const Dataset& data, const Team& team);

 private:
  const std::vector<std::unique_ptr<Listener>>& listeners_;
  std::map<const Dataset*, size_t> told_;
};

}  // namespace tern::trainer
