#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/experiment.h"
#include "tern/trainer/settings.h"

namespace tern::reproduce {

// IstTask::paper of the networks in the paper's tables.
inline constexpr const char *kSpeech2 = "Google Speech 2 layer, of spoken words",
                            *kSpeech3 = "Google Speech 3 layer, of spoken words", *kResNet18 = "CIFAR10 Resnet18",
                            *kVgg12 = "Full ImageNet VGG12";

/// ExperimentEntry::data of the experiments with these tasks.
inline constexpr const char* kIstData =
    "without files tones, drawn. With --data-dir DIR spoken words, if DIR has Speech Commands, the paper's data; else "
    "tones and CIFAR-10: ./dev data cifar10. For VGG12 --data images --data-dir DIR; the paper's is all of ImageNet, "
    "with 21,841 classes";

/// A network and a data set for the comparison of methods in IST's section 4. Each worker has its own batches, so with
/// n workers an epoch takes 1/n of one worker's steps. The learning rate is that of one worker.
struct IstTask {
  std::string name;                ///< part of the names of runs: "mlp"
  std::string title;               ///< "MLP 4096-4096-35 on tones"
  std::string paper;               ///< the network and data in the paper's tables
  std::string program;             ///< program of the runs
  std::vector<std::string> flags;  ///< flags of the network, its data and the optimizer
  std::vector<std::string> places;
  SubnetScope scope;                       ///< value of --ist-scope
  std::string rate;                        ///< rate of the link between workers: "1gbit"
  int64_t images;                          ///< number of training images
  int64_t batch;                           ///< batch of each worker
  int64_t epochs;                          ///< epochs of a full run
  std::optional<int64_t> iterations = {};  ///< number of steps, instead of `epochs`
  bool shortened = false;                  ///< the paper has no such network, or trains it longer
  int64_t hidden = 0;                      ///< neurons of each hidden layer of a perceptron; 0: a convolutional network
  bool evaluates_rounds = false;           ///< evaluations follow rounds, because an epoch has few steps
  /// Whether messages wait here as long as on the link. If they do not, only `own_machine_seconds` counts its time.
  bool waits = true;
  int64_t local_steps = 10;                        ///< J of local SGD and IST, unless a figure compares several
  int64_t calibrated = 20;                         ///< batches for batch-norm statistics
  std::vector<int64_t> usual_workers = {2, 4, 8};  ///< without --workers
  bool one_seed = false;                           ///< even with --seeds, because a run takes long

  /// At least 1: with fewer images than that, the training program says what it expects.
  int64_t epoch_steps(int64_t workers) const { return std::max<int64_t>(1, images / workers / batch); }
  int64_t steps(int64_t workers) const { return iterations.value_or(epochs * epoch_steps(workers)); }
  int64_t seeds(int64_t asked) const { return one_seed ? 1 : asked; }
};

/// A method of distributed training.
struct IstMethod {
  TrainingMethod method;
  const char* title;  ///< its name in the paper
  const char* color;

  /// The value of --method.
  std::string name() const { return to_string(method); }
};

/// Data parallel, local SGD and IST, in this order.
std::span<const IstMethod> ist_methods();
inline constexpr size_t kIst = 2;  ///< IST in `ist_methods`

/// One run of a task.
struct IstRun {
  const IstMethod* method = nullptr;  ///< null: one worker alone
  int64_t workers = 1;
  int64_t steps = 0;
  int64_t local_steps = 1;  ///< J, for methods with local steps
  int64_t seed = 1;
};

/// The tasks that the given options ask for: the paper's perceptrons on spoken words, a perceptron of their size on
/// tones, the paper's residual network on CIFAR-10, and VGG12 on pictures. --data chooses one data set; "shapes" gives
/// the residual network too. Without --data: spoken words if the folder of --data-dir has them, else tones, and with
/// --data-dir also CIFAR-10. --quick shortens them. Throws InputError with the option if one is invalid.
std::vector<IstTask> ist_tasks(const char* experiment, const ExperimentOptions& given);

/// The values of --workers, or `usual`. Throws InputError if one is below 2.
std::vector<int64_t> ist_workers(const ExperimentOptions& options, std::vector<int64_t> usual);

/// A run of a task's whole length with its own J. Without a method: one worker alone.
IstRun run_of(const IstTask& task, const IstMethod* method, int64_t workers, int64_t seed = 1);

Run make_run(const IstTask& task, const IstRun& run);
/// The same for a table of times. A network whose messages do not wait has times of `make_rank_run`.
Run timed_run(const IstTask& task, const IstRun& run);

/// A short run that measures what one rank of `run` computes in a step, on one core and without the others: the whole
/// perceptron, or by IST an n-th of its hidden neurons. Runs whose ranks compute the same have the same name.
Run make_rank_run(const IstTask& task, const IstRun& run);
/// Seconds that rank 0's payload of a mean step of `run` takes on the link.
double link_seconds(const IstTask& task, const RunResult& result, const IstRun& run);
/// Seconds of a step of `run`, a perceptron's, if each worker had a machine with one such core: the measured
/// computation of a rank, and rank 0's payload at the link's rate. nullopt if either run has not finished.
std::optional<double> own_machine_seconds(const Results& results, const IstTask& task, const IstRun& run);
/// Seconds of training until a point of `run`'s curve. If messages do not wait, they are those on own machines; nullopt
/// if these are not known.
std::optional<double> seconds_at(const Results& results, const IstTask& task, const IstRun& run, const Crossing& point);
/// The result of a run; null if it has not finished.
const RunResult* find_result(const Results& results, const IstTask& task, const IstRun& run);

/// The last point of the curve of the run `name`. Throws InputError if it has none, because its log is damaged.
const CurvePoint& end_of(const std::string& name, const RunResult& result);

/// The number with `decimals` decimals; "–" if there is none.
std::string cell(const std::optional<double>& number, int decimals);

/// Text for a figure: each task with its link between workers.
std::string ist_links(const std::vector<IstTask>& tasks);

/// Text for a page: how the tasks are trained and timed.
std::string ist_setting(const std::vector<IstTask>& tasks);
/// Text for a page: the tasks' IstTask::local_steps.
std::string ist_rounds(const std::vector<IstTask>& tasks);
/// Text for a page: what `own_machine_seconds` is.
inline constexpr const char* kOwnMachines =
    "*Own machines* is the time if each worker had a machine with one core: the computation of one rank's step, "
    "measured alone, and the time of rank 0's payload on its cable.";

}  // namespace tern::reproduce
