#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/data_choice.h"
#include "tern/apps/reproduce/engine/experiment.h"

namespace tern::reproduce {

/// How gradients travel in a run.
struct ComparedCodec {
  const char* name;                  ///< in names of runs
  const char* label;                 ///< in tables and figures
  const char* spec;                  ///< of --codec; that of the first, which others are compared with, is none
  std::optional<double> paper = {};  ///< the accuracy that the paper prints, percent
};
inline constexpr ComparedCodec kFloat = {.name = "float", .label = "float", .spec = "none"};

/// QSGD's section 5 leaves matrices of fewer elements in float.
inline constexpr int64_t kSmallMatrix = 10'000;

/// One network, trained by workers with each of several codecs.
struct CodecComparisonPlan {
  std::string title, setting;  ///< what a person reads above the figure and the table
  std::string program;
  DataChoice data;
  std::vector<std::string> flags;  ///< of all runs, beside those of workers, length and seed
  std::vector<ComparedCodec> codecs;
  int64_t min_compress = 0;  ///< tensors of fewer elements travel as floats
  int64_t workers = 2, iterations = 1, seeds = 1, checkpoint_every = 500;
};

/// Accuracies, bytes and curves of a plan's runs. Floats travel round a ring, codes are gathered by all.
class CodecComparison final : public Experiment {
 public:
  explicit CodecComparison(CodecComparisonPlan plan) : plan_(std::move(plan)) {}

  std::vector<Run> runs() const override;
  Report report(const Results& results) const override;

 private:
  Run make_run(const ComparedCodec& codec, int64_t seed) const;
  /// Of the seeds that have ended.
  std::vector<const RunResult*> results_of(const ComparedCodec& codec, const Results& results) const;
  /// Of the model, from what the float run sent; nullopt where it has not ended.
  std::optional<double> elements(const Results& results) const;
  std::string table(const Results& results) const;
  std::string figure(const Results& results) const;

  CodecComparisonPlan plan_;
};

/// The one number of --workers, or `usual`. An InputError where it does not share a batch of `batch` equally among two
/// or more.
int64_t choose_workers(const ExperimentOptions& options, int64_t usual, int64_t batch);

/// What a page adds behind the name of a data set other than `papers`.
const char* not_the_papers(const DataChoice& data, const char* papers);

}  // namespace tern::reproduce
