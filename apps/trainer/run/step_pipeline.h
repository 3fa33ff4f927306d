#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/dist/methods/distributed_optimizer.h"
#include "tern/kernels/operation_clock.h"
#include "tern/optim/average.h"
#include "tern/optim/optimizer.h"
#include "tern/trainer/rank/interrupt.h"
#include "tern/trainer/rank/team.h"
#include "tern/trainer/report/listener.h"
#include "tern/trainer/run/batch_feed.h"
#include "tern/trainer/run/step_graph.h"
#include "tern/trainer/settings.h"
#include "tern/trainer/task.h"

namespace tern::trainer {

/// The parts of a run that its training steps use. They outlive the pipeline.
struct StepParts {
  const TrainSettings& settings;
  const Task& task;
  const Dataset& training;
  Module& model;
  Optimizer& optimizer;
  DistributedOptimizer& method;
  ParameterAverage* average;  ///< null: none
  BatchFeed& feed;
  Communicator* communicator;  ///< null: the rank trains alone
  const InterruptGuard& interrupt;
  OperationClock* clock;                          ///< null: no operation is timed
  std::function<void(const std::string&)> noted;  ///< takes a remark for the user
};

/// A step to train.
struct StepPlan {
  int64_t step = 1;              ///< from 1
  int64_t epoch = 1;             ///< from 1
  double lr = 0;                 ///< the optimizer has it already
  bool finishes_all = false;     ///< all issued steps are finished before the next one
  bool keeps_gradients = false;  ///< the caller reads the gradients, too
};

/// Does training steps. A step is issued, its output arrives later, and then it is finished. A group of steps
/// (--log-every) is issued before the first of them is finished, and a GPU works on the next step meanwhile. One
/// thread.
class StepPipeline {
 public:
  explicit StepPipeline(StepParts parts);
  StepPipeline(const StepPipeline&) = delete;
  StepPipeline& operator=(const StepPipeline&) = delete;

  /// Issues a step. Then finishes the steps that are due: the group before, or all. Throws what a step can throw. If a
  /// rank trains alone and the loss of an earlier step is not finite, that is the error.
  void train(const StepPlan& plan);
  /// Sets the training time of the newest step.
  void set_seconds(double seconds);
  /// The reports of the steps that were finished since the last call. After an error, those before the wrong step.
  std::vector<StepReport> take_finished();

  /// Whether a user stopped one of the ranks. All ranks learn of it from the same group of steps.
  bool interrupted() const { return interrupted_; }
  /// Whether a CUDA graph has the exchange, too, not only what comes before it. All ranks must agree.
  bool records_exchange() const { return records_whole_steps_ && parts_.communicator != nullptr; }

 private:
  /// What the exchanges of this rank have taken so far.
  struct Spent {
    Traffic traffic;
    ExchangeTimes times;
  };
  /// A step whose work is completely issued; its output may not have arrived yet.
  struct Issued {
    StepReport report = {};
    std::optional<DeviceBatch> batch;         ///< the last; only the newest step keeps it
    bool stop;                                ///< the user stopped this rank
    std::vector<double> numbers = {};         ///< see `numbers`; on a GPU those of the batches before the last
    std::function<StepOutput()> output = {};  ///< waits for it; null if `kept_` has it
    std::optional<Team::Sum> sum = {};        ///< of the group's numbers over the ranks, if that is already under way
  };

  void record_steps(Device device);
  void train_next();
  bool runs_as_graph(const DeviceBatch& batch);
  Forward forward(const DeviceBatch& batch);
  std::vector<double> accumulate(const DeviceBatch& batch, bool stop);
  std::vector<Tensor> scored(const Forward& pass) const;
  Variable part_of_mean(const Variable& loss) const;
  Issued issue(const DeviceBatch& batch, bool stop, std::vector<double> before, bool recorded);
  Issued replay(const DeviceBatch& batch, bool stop);
  void check_loss(const DeviceBatch& batch, const StepOutput& output, int64_t step, bool is_of_batch = true) const;
  std::vector<double> numbers(const DeviceBatch& batch, const StepOutput& output, bool stop) const;
  int64_t steps_before() const { return plan_.step - 1; }
  bool ends_group(int64_t step) const { return step % steps_together_ == 0; }
  bool finishes_now(bool stop) const;
  Spent spent() const { return {team_.traffic(), parts_.method.times()}; }
  void finish(const Spent& before);
  StepReport report_of(const Issued& step, const StepOutput& output, std::span<const double> sums);
  static std::vector<double> joined_numbers(std::span<const Issued> steps, std::span<const double> next);
  std::vector<double> sum_up(const std::vector<Issued>& steps, const std::vector<StepOutput>& outputs) const;

  StepParts parts_;
  Team team_;
  StepPlan plan_ = {};  ///< of the step that is trained
  bool on_cpu_;
  bool counts_scores_;
  int64_t steps_together_;  ///< steps whose losses are read together
  StepOutputs outputs_, norms_;
  std::unique_ptr<KeptOutputs> kept_;  ///< null if the output of each step is read
  std::unique_ptr<StepGraph> graph_;   ///< null if steps are not recorded
  bool records_whole_steps_ = false;   ///< not only what comes before the exchange
  std::vector<Issued> issued_;         ///< the last steps, whose losses nobody has read
  std::vector<StepReport> finished_;   ///< the steps before, until the caller takes them
  bool interrupted_ = false;
};

}  // namespace tern::trainer
