#pragma once

#include <cstdint>
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
#include "tern/trainer/job/pulse.h"
#include "tern/trainer/report/console.h"
#include "tern/trainer/report/listener.h"
#include "tern/trainer/run/batch_feed.h"
#include "tern/trainer/run/checkpoint.h"
#include "tern/trainer/run/datasets.h"
#include "tern/trainer/run/evaluation.h"
#include "tern/trainer/run/interrupt.h"
#include "tern/trainer/run/step_graph.h"
#include "tern/trainer/run/team.h"
#include "tern/trainer/settings.h"

namespace tern::trainer {

/// What a rank trains with; belongs to whoever started it.
struct RankResources {
  RunData data;
  const InterruptGuard& interrupt;
  LineWriter& out;                       ///< for what a person reads
  Communicator* communicator = nullptr;  ///< null: it trains alone
  std::string launcher = {};             ///< what told the rank its place
  Pulse pulse = {};                      ///< by which a supervisor sees its progress
};

/// One rank's part in a training run: the model, its share of the data, its optimizer, and how many steps are done, on
/// which all else (the place in the data, the learning rate, random numbers) depends. Used by one thread.
class Trainer {
 public:
  /// Builds the model and loads the checkpoint of --resume. An InputError names what a person has to put right, a
  /// PeerError a setting by which the ranks differ.
  Trainer(const Application& application, const TrainSettings& settings, const RankResources& resources);

  /// Trains to the end, evaluating after each epoch and at the end; the leading rank writes what the settings ask for.
  /// Throws Interrupted after the step in which a person stopped any rank, with a checkpoint written.
  void train();

 private:
  RunParts parts();
  void restore();
  RunStart describe() const;
  /// What a step adds to the ranks' sums: its loss, its correct answers, and whether a person stopped the rank.
  using Sums = std::function<std::vector<double>()>;
  /// A step whose work is all issued; what it gave may still be on its way.
  struct IssuedStep {
    StepReport report;
    double images;
    Sums sums;  ///< waits
  };
  struct ForwardPass {
    Variable x, logits, loss;
  };

  void start_loader();
  void train_step();
  bool runs_as_graph(const FedBatch& batch);
  ForwardPass forward(const FedBatch& batch);
  Sums issue(const FedBatch& batch, bool stop);
  Sums replay(const FedBatch& batch, bool stop);
  std::vector<double> numbers(const FedBatch& batch, const StepOutput& output, int64_t step, bool stop) const;
  bool on_cpu() const { return parse_device(settings_.device).type == DeviceType::cpu; }
  bool finishes_later(bool stop) const;
  StepReport finish(IssuedStep step);
  void gather_model();
  void evaluate_model();
  void write_checkpoint();
  void save_model();
  RunReport report();
  Traffic sent_in_all() const;
  TeamReport report_team(double seconds) const;

  int64_t epochs_done() const { return steps_ / loader_->batches(); }
  bool at_epoch_end() const { return steps_ > 0 && steps_ % loader_->batches() == 0; }
  bool ended() const { return steps_ == total_steps_; }
  bool checkpoint_due() const;
  std::string what_is_kept() const;

  TrainSettings settings_;
  std::string name_;
  RankResources resources_;
  Team team_;
  std::unique_ptr<ResidentSet> set_;  ///< the training images, where the device holds them
  std::unique_ptr<DataLoader> loader_, test_loader_;
  std::unique_ptr<BatchFeed> feed_;                 ///< of loader_
  std::unique_ptr<DataLoader> calibration_loader_;  ///< null where nothing is calibrated
  std::unique_ptr<Module> model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<DistributedOptimizer> method_;
  std::unique_ptr<ParameterAverage> average_;  ///< null without --ema-decay
  Schedule schedule_;
  std::unique_ptr<StepOutputs> outputs_;
  std::unique_ptr<StepGraph> graph_;                  ///< null where steps are not recorded
  std::unique_ptr<OperationClock> clock_;             ///< null without --profile
  std::optional<IssuedStep> issued_;                  ///< the last one, where the next does not wait for it
  std::optional<RunLock> lock_;                       ///< of the leading rank with --checkpoint
  std::vector<std::unique_ptr<Listener>> listeners_;  ///< none but on the leading rank
  UnreadNotes unread_notes_{listeners_};

  int64_t parameters_ = 0;  ///< of the whole model, of which a rank may hold a part
  int64_t total_steps_ = 0;
  int64_t first_step_ = 0;  ///< done before this process
  int64_t steps_ = 0;
  std::string run_;         ///< the id of a run with checkpoints
  int64_t kept_step_ = -1;  ///< of the newest whole checkpoint; -1: none
  double first_seconds_ = 0;
  double seconds_ = 0;        ///< of training
  Traffic first_sent_;        ///< by this rank before this process
  bool interrupted_ = false;  ///< a person stopped one of the ranks, as all know
  Evaluation evaluation_;
};

}  // namespace tern::trainer
