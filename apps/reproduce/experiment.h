#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tern/apps/reproduce/run.h"

namespace tern {

/// What a person chooses about an experiment; unset: as the paper has it, or its short form where `quick`.
struct ExperimentOptions {
  std::string data;  ///< empty: the paper's
  std::string data_dir;
  bool quick = false;
  std::optional<int64_t> iterations, seeds;
  std::vector<int64_t> workers;
};

/// What the runs so far say beside the paper.
struct Report {
  std::string text;                            ///< Markdown
  std::map<std::string, std::string> figures;  ///< SVG by file name
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

/// How an experiment appears to a person. Adding one is one more entry of the list in experiments.cpp.
struct ExperimentEntry {
  const char* name;   ///< as a person types it
  const char* title;  ///< what it is in the paper
  const char* data;   ///< what it needs
  const char* time;   ///< what it takes, in full and with --quick
  /// An InputError names the option that cannot be.
  std::unique_ptr<Experiment> (*make)(const ExperimentOptions& options);
};

std::span<const ExperimentEntry> experiments();
/// An InputError offers the nearest name where `name` is none of them.
const ExperimentEntry& find_experiment(const std::string& name);

}  // namespace tern
