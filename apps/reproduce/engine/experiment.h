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

/// The result of a study: lists of numbers by name: {"bits", {2.4, 2.5}}.
using Numbers = std::map<std::string, std::vector<double>>;

/// A study calls this with the number of steps done. Throws Interrupted if the user wants to stop.
using StudyProgress = std::function<void(int64_t step)>;

/// A unit of work for a table: a training run of a program, or a study in this process. It is done once, and its result
/// is kept in a folder with its name. A value.
struct Run {
  std::string name;                      ///< "momentum-ternary-4-workers-seed-1"
  std::string program = {};              ///< a program in this program's folder: "train_lenet"; empty for a study
  std::vector<std::string> flags;        ///< all that affects the result; of a study, {"n=1024", "seed=1"}
  std::vector<std::string> places = {};  ///< flags that give the folder of the data
  int64_t steps = 0;
  std::vector<std::pair<std::string, std::string>> columns = {};  ///< cells that identify it: {"workers", "4"}, ...
  int64_t checkpoint_every = 500;                                 ///< in steps: from a few seconds to a minute of work
  bool measures_time = false;  ///< its time is what the table needs; that of another processor does not count
  /// The work of a study; null for a program. A study that is stopped starts again from its beginning. Its numbers must
  /// be finite.
  std::function<Numbers(const StudyProgress&)> study = {};

  bool is_study() const { return study != nullptr; }
};

/// An evaluation during a training run.
struct CurvePoint {
  int64_t step = 0;
  double seconds = 0;          ///< training time before it, without evaluations
  double score = 0, loss = 0;  ///< as in RunResult
  int64_t bytes_sent = 0;      ///< bytes that rank 0 sent before it, payload and overhead
};

/// The parts of a rank's training time, in seconds.
struct TimeShares {
  double compute = 0, encode = 0, wait = 0, decode = 0;

  double total() const { return compute + encode + wait + decode; }
};

/// The result of a run, from its log.
struct RunResult {
  double score = 0, loss = 0;  ///< of the last evaluation; the task's first score, such as an accuracy in 0 to 1
  std::string score_key = "accuracy";         ///< its name in the log
  std::map<std::string, double> scores = {};  ///< of the last evaluation, by names in the log
  double seconds = 0;                         ///< training time, or time of the study
  std::optional<int64_t> bytes_sent_payload = {}, bytes_sent_overhead = {};  ///< by rank 0, if there were workers
  std::vector<CurvePoint> curve = {};
  std::vector<double> losses = {};      ///< training loss of each step
  double step_seconds = 0;              ///< duration of the median step
  std::optional<TimeShares> time = {};  ///< of rank 0, if there were workers
  Numbers numbers = {};                 ///< result of a study
  std::string processor = {};           ///< that did the work; empty if it is not known, or if there were several
};

/// Where a curve crosses a score.
struct Crossing {
  double steps = 0, seconds = 0;
};

/// The point at which the score first reached `score`, on a straight line between the evaluation that found it and the
/// one before. nullopt if no evaluation found it.
std::optional<Crossing> crossing(const RunResult& result, double score);

/// The results of the finished runs, by name.
using Results = std::map<std::string, RunResult>;

/// The comparison of the finished runs with the paper.
struct Report {
  std::string text;                                ///< Markdown; a number after " ± " is a standard error
  std::map<std::string, std::string> figures;      ///< SVG by file name
  std::map<std::string, std::string> tables = {};  ///< CSV by file name, in addition to the table of the runs
  std::string title = {};                          ///< of the page; if empty, the entry's
};

/// A table or figure of a paper with given options. Immutable.
class Experiment {
 public:
  virtual ~Experiment() = default;
  /// All runs, the most important first, so that a table that is stopped early is useful.
  virtual std::vector<Run> runs() const = 0;
  /// The report on the runs that have finished so far.
  virtual Report report(const Results& results) const = 0;
};

/// The --recipe of runs in the form for --swift.
inline constexpr const char* kSwift = "swift";

/// ExperimentEntry::device of experiments whose runs are all programs; they accept --device.
inline constexpr const char *kAnyDevice = "CPU, or GPU: --device cuda",
                            *kLongOnGpu = "GPU for its full length: --device cuda";

/// The description of an experiment, for users: an entry of the list in experiments.cpp.
struct ExperimentEntry {
  const char* name;            ///< name on the command line
  const char* title;           ///< its title in the paper
  const char* data;            ///< the data that it needs
  const char* time = "";       ///< duration, in full and with --quick
  const char* device = "CPU";  ///< device that it needs
  bool takes_steps = false;    ///< computes from the training steps of --steps
  bool takes_swift = false;    ///< has a form for --swift
  /// Makes the experiment. Throws InputError with the option if one is invalid. Null if tern cannot run it yet.
  std::unique_ptr<Experiment> (*make)(const ExperimentOptions& options) = nullptr;
  const char* lacks = "";  ///< what is missing, if `make` is null
};

/// A `make` function for an experiment that is constructed from the options only.
template <class Made>
std::unique_ptr<Experiment> make_experiment(const ExperimentOptions& options) {
  return std::make_unique<Made>(options);
}

}  // namespace tern::reproduce
