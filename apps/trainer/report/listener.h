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
#include "tern/trainer/rank/console.h"
#include "tern/trainer/rank/team.h"
#include "tern/trainer/report/histogram.h"
#include "tern/trainer/settings.h"
#include "tern/trainer/task.h"

namespace tern::trainer {

/// Facts about a run before its first step.
struct RunStart {
  std::string application;
  TrainSettings settings;          ///< with the final threads and epochs
  std::vector<Score> scores = {};  ///< of the task
  std::string noun = "samples";    ///< Task::sample_noun
  int64_t training_samples = 0;
  int64_t test_samples = 0;
  int64_t steps_per_epoch = 0;
  int64_t total_steps = 0;
  int64_t first_step = 0;             ///< steps of earlier parts of a resumed run
  int64_t parameters = 0;             ///< number of trained values
  int64_t samples_per_step = 0;       ///< of all ranks, in all batches that --accumulate adds
  std::string launcher = {};          ///< the source of this rank's place, if there is one
  std::string data_fingerprint = {};  ///< of the training data; empty if nobody compares them
};

/// One training step, reported after its update.
struct StepReport {
  int64_t step = 0;   ///< from 1, counted over all parts of a resumed run
  int64_t epoch = 0;  ///< from 1
  double loss = 0;    ///< mean over the batch
  double lr = 0;
  double seconds = 0;     ///< training time of the run so far
  bool is_newest = true;  ///< the next report does not follow at once
  /// On the batch, before the update; in the order of RunStart::scores. A rank that trains alone gives them only with
  /// --plot.
  std::vector<double> scores = {};
  Traffic traffic = {};      ///< traffic of this rank in this step
  ExchangeTimes times = {};  ///< of this rank in this step
  /// 2-norm of all gradients that this rank's optimizer got, before clipping. Only if a log or event files are written.
  std::optional<double> gradient_norm = {};
};

/// The distributions of this rank's model after a step.
struct HistogramReport {
  int64_t step = 0;
  /// By the names of parameters: their values, and the gradients of the step.
  std::map<std::string, Histogram> weights = {}, gradients = {};
};

struct EvaluationReport {
  int64_t step = 0, epoch = 0;
  std::vector<double> scores = {};  ///< in the order of RunStart::scores
  double loss = 0;
};

/// The communication cost of a rank. Bytes count all parts of a resumed run; times count this process only.
struct TeamReport {
  Traffic traffic = {};           ///< bytes that this rank sent
  double sent_payload_mean = 0;   ///< payload bytes per rank and step, the mean over all ranks
  double sent_overhead_mean = 0;  ///< overhead bytes, likewise
  double float_ring_bytes = 0;    ///< bytes that a rank would send per step in a float32 ring
  double float_ring_ratio = 0;    ///< bytes of a float32 ring over the bytes that this rank sent; 0 if it sent none
  double compute = 0;             ///< seconds of training without the exchange
  int64_t peak_memory = 0;        ///< bytes, the largest of all ranks' processes
  ExchangeTimes times;
};

/// Facts about the whole run.
struct RunReport {
  std::vector<double> scores = {};  ///< of the last evaluation
  double loss = 0;                  ///< of the last evaluation
  double seconds = 0;               ///< training time
  int64_t steps = 0;
  bool reached_target = false;                     ///< whether the run ended because it reached --target-score
  double samples_per_second = 0;                   ///< training throughput of this process
  double data_wait = 0;                            ///< fraction of this process's training time spent waiting for data
  int64_t peak_memory = 0;                         ///< bytes
  std::optional<int64_t> peak_device_memory = {};  ///< bytes of tensors on the device, unless it is the CPU
  std::optional<TeamReport> team = {};
  std::vector<OperationTime> operations = {};  ///< of training steps, with --profile; the longest first
};

/// Receives the events of a run on the leading rank, from the training thread: `started` first, then `stepped`,
/// `counted`, `evaluated` and `checkpointing`, and `ended` last, unless the run is interrupted. Its files must be valid
/// without `ended`.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void started(const RunStart&) {}
  /// A remark about the run for the user. May come at any time.
  virtual void noted(const std::string&) {}
  virtual void stepped(const StepReport&) {}
  /// Comes after `stepped` for the same step, with --histograms.
  virtual void counted(const HistogramReport&) {}
  virtual void evaluated(const EvaluationReport&) {}
  /// A checkpoint is about to be written. A run that resumes from it does not repeat earlier events. So everything
  /// received until now must be durable when this returns.
  virtual void checkpointing() {}
  virtual void ended(const RunReport&) {}
};

/// Makes the listeners that the flags ask for: progress on `out`, log, event files, curves. Opens their files.
std::vector<std::unique_ptr<Listener>> make_listeners(const TrainSettings& settings, LineWriter& out);

/// Tells listeners which examples some rank could not read. Tells them again only if there are more.
class UnreadNotes {
 public:
  explicit UnreadNotes(const std::vector<std::unique_ptr<Listener>>& listeners) : listeners_(listeners) {}

  /// All ranks of `team` must call this together. The ranks that have listeners tell them. `noun` is what samples are
  /// called.
  void tell_of(const Dataset& data, const Team& team, const std::string& noun);

 private:
  const std::vector<std::unique_ptr<Listener>>& listeners_;
  std::map<const Dataset*, size_t> told_;
};

}  // namespace tern::trainer
