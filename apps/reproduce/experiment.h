#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tern/apps/reproduce/run.h"

namespace tern {

/// What a person chooses about an experiment; unset: as the paper has it, or its short form where `quick`.
struct ExperimentOptions {
  std::string data = {};  ///< empty: the paper's
  std::string data_dir = {};
  std::string device = "cpu";  ///< where programs train, as their --device takes it
  bool quick = false;
  std::optional<int64_t> iterations = {}, seeds = {};
  std::vector<int64_t> workers = {};
};

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

/// How an experiment appears to a person: a line of a paper's list, see papers.h.
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

/// Of all papers.
std::vector<ExperimentEntry> experiments();
/// An InputError offers the nearest name where `name` is none of them, and says why tern does not run it yet.
ExperimentEntry find_experiment(const std::string& name);

}  // namespace tern
