#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tern/apps/reproduce/engine/options.h"

namespace tern::reproduce {

/// What a study found: numbers in lists, each under a name: {"bits", {2.4, 2.5}}.
using Numbers = std::map<std::string, std::vector<double>>;

/// Tells how many of a run's steps are done. Throws Interrupted where a person wants it to stop.
using StudyProgress = std::function<void(int64_t step)>;

/// One piece of work behind a table: a training run by a program, or a study by this process. Done once, kept in a
/// folder of its name. A value.
struct Run {
  std::string name;                 ///< "momentum-ternary-4-workers-seed-1"
  std::string program = {};         ///< stands beside this one: "train_lenet"; none for a study
  std::vector<std::string> flags;   ///< all that shapes the result; of a study, what it is told: {"n=1024", "seed=1"}
  std::vector<std::string> places;  ///< flags that say where its data lies
  int64_t steps = 0;
  std::vector<std::pair<std::string, std::string>> columns = {};  ///< what tells it from others: {"workers", "4"}, ...
  int64_t checkpoint_every = 500;                                 ///< steps: some seconds to a minute of work
  /// In place of a program: computes or measures. A study that is stopped begins anew. An Error where a number that it
  /// found is not finite.
  std::function<Numbers(const StudyProgress&)> study = {};

  bool is_study() const { return study != nullptr; }
};

/// An evaluation in the course of a training run.
struct CurvePoint {
  int64_t step = 0;
  double seconds = 0;             ///< of training before it, without evaluations
  double accuracy = 0, loss = 0;  ///< accuracy from 0 to 1
  int64_t bytes_sent = 0;         ///< before it, by rank 0, payload and overhead
};

/// Where a rank's training time went since its process started, seconds.
struct TimeShares {
  double compute = 0, encode = 0, wait = 0, decode = 0;

  double total() const { return compute + encode + wait + decode; }
};

/// How a run ended, as its log has it.
struct RunResult {
  double accuracy = 0, loss = 0;                                   ///< of the last evaluation; accuracy from 0 to 1
  double seconds = 0;                                              ///< of training, or that a study took
  std::optional<int64_t> bytes_sent_payload, bytes_sent_overhead;  ///< by rank 0, where workers trained together
  std::vector<CurvePoint> curve = {};
  std::vector<double> losses = {};      ///< of training, step by step
  double step_seconds = 0;              ///< the median step's
  std::optional<TimeShares> time = {};  ///< of rank 0, where workers trained together
  Numbers numbers = {};                 ///< of a study
};

/// The training time after which an evaluation first reached `accuracy`, 0 to 1; nullopt where none did.
std::optional<double> seconds_to(const RunResult& result, double accuracy);

/// Of the runs that have ended, by name.
using Results = std::map<std::string, RunResult>;

/// What the runs so far say beside the paper.
struct Report {
  std::string text;                                ///< Markdown
  std::map<std::string, std::string> figures;      ///< SVG by file name
  std::map<std::string, std::string> tables = {};  ///< CSV by file name, beside that of the runs
};

/// A table or figure of a paper under given options. Immutable.
class Experiment {
 public:
  virtual ~Experiment() = default;
  /// In the order in which a table that is stopped early is of most use.
  virtual std::vector<Run> runs() const = 0;
  /// Of whatever runs have ended.
  virtual Report report(const Results& results) const = 0;
};

/// The device of experiments whose runs are all programs', which take --device.
inline constexpr const char *kAnyDevice = "CPU, or GPU: --device cuda",
                            *kLongOnGpu = "GPU for its full length: --device cuda";

/// How an experiment appears to a person: a line of the list in experiments.cpp.
struct ExperimentEntry {
  const char* name;            ///< as a person types it
  const char* title;           ///< what it is in the paper
  const char* data;            ///< what it needs
  const char* time = "";       ///< what it takes, in full and with --quick
  const char* device = "CPU";  ///< on what
  /// An InputError names the option that cannot be. Null: tern does not run it yet,
  std::unique_ptr<Experiment> (*make)(const ExperimentOptions& options) = nullptr;
  const char* lacks = "";  ///< for want of this
};

/// The `make` of an experiment that is made of the options alone.
template <class Made>
std::unique_ptr<Experiment> make_experiment(const ExperimentOptions& options) {
  return std::make_unique<Made>(options);
}

}  // namespace tern::reproduce
