#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tern/data/loader.h"
#include "tern/dist/methods/distributed_optimizer.h"
#include "tern/optim/average.h"
#include "tern/optim/optimizer.h"
#include "tern/optim/schedule.h"
#include "tern/trainer/application.h"
#include "tern/trainer/data/datasets.h"
#include "tern/trainer/rank/console.h"
#include "tern/trainer/rank/interrupt.h"
#include "tern/trainer/rank/pulse.h"
#include "tern/trainer/rank/team.h"
#include "tern/trainer/report/listener.h"
#include "tern/trainer/run/batch_feed.h"
#include "tern/trainer/run/checkpoint.h"
#include "tern/trainer/run/evaluation.h"
#include "tern/trainer/run/memory.h"
#include "tern/trainer/run/step_pipeline.h"
#include "tern/trainer/settings.h"
#include "tern/trainer/task.h"

namespace tern::trainer {

class FlightWatch;

/// The resources of a rank; the caller that starts the rank owns them.
struct RankResources {
  RunData data;
  const InterruptGuard& interrupt;
  LineWriter& out;                       ///< for the user
  Communicator* communicator = nullptr;  ///< null: the rank trains alone
  std::string launcher = {};             ///< the source of the rank's place
  Pulse pulse = {};                      ///< shows the rank's progress to a supervisor
  RanksHere here = {};                   ///< with which it shares memory
  FlightWatch* flight = nullptr;         ///< hears when training begins; null: nobody does
};

/// One rank's part in a training run: the model, its share of the data, its optimizer, and the number of steps done.
/// The position in the data, the learning rate and the random numbers depend on that number. One thread.
class Trainer {
 public:
  /// Builds the model and loads the checkpoint of --resume. Throws InputError if the settings or files are wrong, and
  /// PeerError if the ranks differ in a setting.
  Trainer(const Application& application, const TrainSettings& settings, const RankResources& resources);

  /// Trains to the end, or to --target-score. Evaluates after each epoch or every --eval-every steps, and at the end.
  /// The leading rank writes the files that the settings ask for. If a user stops any rank, writes a checkpoint after
  /// the steps in which all ranks learn of it, and throws Interrupted.
  void train();

 private:
  RunParts parts();
  void fill(const Application& application);
  void restore();
  RunStart describe() const;
  void start_loader();
  void train_step();
  HistogramReport count_values() const;
  bool on_cpu() const { return parse_device(settings_.device).type == DeviceType::cpu; }
  void tell();
  void settle() const;
  void settle_together() const;
  void count_exchange(void (DistributedOptimizer::*function)());
  void gather_model();
  void evaluate_model();
  void write_checkpoint();
  void check_model() const;
  void save_model();
  std::exception_ptr save_at_end();
  RunReport report();
  Traffic sent_in_all() const;
  TeamReport report_team(double seconds) const;

  int64_t steps_per_epoch() const { return loader_->batches() / settings_.accumulate; }
  int64_t epochs_done() const { return steps_ / steps_per_epoch(); }
  bool at_epoch_end() const { return steps_ > 0 && steps_ % steps_per_epoch() == 0; }
  bool evaluation_due() const {
    return settings_.eval_every > 0 ? steps_ > 0 && steps_ % settings_.eval_every == 0 : at_epoch_end();
  }
  bool reaches_target() const;
  bool ended() const { return steps_ == total_steps_ || reached_; }
  bool checkpoint_due() const;
  std::string what_is_kept() const;

  TrainSettings settings_;
  std::string name_;
  RankResources resources_;
  Team team_;
  std::unique_ptr<DeviceImages> images_;  ///< null if the loader makes the training images
  std::unique_ptr<DataLoader> loader_, test_loader_;
  std::unique_ptr<BatchFeed> feed_;                 ///< feeds from loader_
  std::unique_ptr<DataLoader> calibration_loader_;  ///< null if nothing is calibrated
  std::shared_ptr<const Task> task_;
  std::vector<Score> scores_;  ///< of task_
  PartialCopy copied_;         ///< what --init-partial took
  std::unique_ptr<Module> model_;
  std::optional<SubnetCuts> cuts_;  ///< of a sharded model
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<DistributedOptimizer> method_;
  std::unique_ptr<ParameterAverage> average_;  ///< null without --ema-decay
  Schedule schedule_;
  std::map<size_t, Schedule> group_schedules_;        // of the optimizer's groups that have one of their own
  std::unique_ptr<OperationClock> clock_;             ///< null without --profile
  std::unique_ptr<StepPipeline> pipeline_;            ///< uses the members above
  std::optional<RunLock> lock_;                       ///< on the leading rank, with --checkpoint
  std::vector<std::unique_ptr<Listener>> listeners_;  ///< only on the leading rank
  UnreadNotes unread_notes_{listeners_};

  int64_t parameters_ = 0;  ///< trained values of the whole model; a rank may hold a part of it
  int64_t total_steps_ = 0;
  int64_t first_step_ = 0;  ///< steps done before this process
  int64_t steps_ = 0;
  std::string run_;         ///< the id of a run with checkpoints
  int64_t kept_step_ = -1;  ///< step of the newest whole checkpoint; -1: none
  double first_seconds_ = 0;
  double seconds_ = 0;  ///< training time
  Traffic first_sent_;  ///< sent by this rank before this process
  Evaluation evaluation_;
  bool reached_ = false;  ///< whether the last evaluation reached --target-score
};

}  // namespace tern::trainer
