#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/experiment.h"
#include "tern/trainer/settings.h"

namespace tern::reproduce {

/// A network and a data set as IST's section 4 compares methods on them. Every worker has batches of its own, so that n
/// workers take an n-th of one worker's steps for an epoch; the learning rate is that of one worker.
struct IstTask {
  std::string name;                ///< in names of runs: "mlp"
  std::string title;               ///< "MLP 4096-4096-35 on tones"
  std::string paper;               ///< what the paper trains, as its tables call it
  std::string program;             ///< of the runs
  std::vector<std::string> flags;  ///< of the network, its data and the optimizer
  std::vector<std::string> places;
  SubnetScope scope;                       ///< of --ist-scope
  std::string rate;                        ///< of the link between workers: "1gbit"
  int64_t images;                          ///< to train on
  int64_t batch;                           ///< of a worker in a step
  int64_t epochs;                          ///< of a run to the end
  std::optional<int64_t> iterations = {};  ///< instead
  bool shortened = false;                  ///< no such network, or not for so long, is in the paper

  int64_t epoch_steps(int64_t workers) const { return images / workers / batch; }
  int64_t steps(int64_t workers) const { return iterations.value_or(epochs * epoch_steps(workers)); }
};

/// How workers train together.
struct IstMethod {
  TrainingMethod method;
  const char* title;  ///< as the paper calls it
  const char* color;

  /// As --method takes it.
  std::string name() const { return to_string(method); }
};

/// Data parallel, local SGD and IST.
std::span<const IstMethod> ist_methods();

/// One run of a task.
struct IstRun {
  const IstMethod* method = nullptr;  ///< null for one worker alone
  int64_t workers = 1;
  int64_t steps = 0;
  int64_t local_steps = 10;  ///< J, where the method has them
  int64_t seed = 1;
};

/// The paper's perceptron, on tones, and its residual network, on CIFAR-10: one of them by --data, which takes shapes
/// for the latter, too; otherwise the perceptron, which needs no file, and the other with --data-dir. Shortened by
/// --quick. An InputError names the option that cannot be.
std::vector<IstTask> ist_tasks(const char* experiment, const ExperimentOptions& options);

/// The numbers of --workers, or `usual`. An InputError where one is below 2.
std::vector<int64_t> ist_workers(const ExperimentOptions& options, std::vector<int64_t> usual);

/// An InputError where there are --seeds: of an experiment that shows one run of each kind.
void refuse_seeds(const char* experiment, const ExperimentOptions& options);

Run make_run(const IstTask& task, const IstRun& run);
/// Null where it has not ended.
const RunResult* find_result(const Results& results, const IstTask& task, const IstRun& run);

/// With so many decimals; "–" where there is none.
std::string cell(const std::optional<double>& number, int decimals);

/// Each task with its link between workers, as text of a figure.
std::string ist_links(const std::vector<IstTask>& tasks);

/// How the tasks are trained and timed, as text of a page.
std::string ist_setting(const std::vector<IstTask>& tasks);

}  // namespace tern::reproduce
