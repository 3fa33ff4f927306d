#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/data_choice.h"
#include "tern/apps/reproduce/engine/experiment.h"

namespace tern::reproduce {

/// The codec of the gradients in a run.
struct ComparedCodec {
  const char* name;                  ///< part of the names of runs
  const char* label;                 ///< in tables and figures
  const char* spec;                  ///< value of --codec; "none" for a plan's first, the baseline
  std::optional<double> paper = {};  ///< score in the paper, percent
};
inline constexpr ComparedCodec kFloat = {.name = "float", .label = "float", .spec = "none"};
/// QSGD's codes in its Table 1.
inline constexpr ComparedCodec
    kBits2 = {.name = "2-bit", .label = "2 bit / 128", .spec = "qsgd:bits=2,bucket=128,norm=max"},
    kBits4 = {.name = "4-bit", .label = "4 bit / 512", .spec = "qsgd:bits=4,bucket=512,norm=max"},
    kBits8 = {.name = "8-bit", .label = "8 bit / 512", .spec = "qsgd:bits=8,bucket=512,norm=max"};
/// The codec with the paper's score, in percent.
constexpr ComparedCodec scored(ComparedCodec codec, double paper) {
  codec.paper = paper;
  return codec;
}

/// Threshold for --min-compress: QSGD's section 5 keeps smaller matrices in float.
inline constexpr int64_t kSmallMatrix = 10'000;
/// The flags of workers that send these codes, and floats of smaller matrices.
std::vector<std::string> code_flags(const ComparedCodec& codec);

/// A network that workers train with each of several codecs.
struct CodecComparisonPlan {
  std::string title, setting;  ///< heading of the figure, and text above the table
  std::string program;
  DataChoice data;
  std::vector<std::string> flags;  ///< flags of all runs, except workers, length and seed
  std::vector<ComparedCodec> codecs;
  int64_t min_compress = 0;  ///< smaller tensors are sent as floats
  int64_t workers = 2, iterations = 1, seeds = 1, checkpoint_every = 500;
  std::string score = "accuracy";  ///< what the runs are scored by, in percent
  std::string papers_score = {};   ///< the paper's, if it is another: then no difference from it is shown
  bool lower_is_better = false;    ///< the runs' score; the paper's is always an accuracy
};

/// Compares scores, bytes and curves of a plan's runs. Floats use the ring exchange, codes use allgather.
class CodecComparison final : public Experiment {
 public:
  explicit CodecComparison(CodecComparisonPlan plan) : plan_(std::move(plan)) {}

  std::vector<Run> runs() const override;
  Report report(const Results& results) const override;

 private:
  Run make_run(const ComparedCodec& codec, int64_t seed) const;
  /// The results of the seeds that have finished.
  std::vector<const RunResult*> results_of(const ComparedCodec& codec, const Results& results) const;
  /// Number of elements of the model, computed from the bytes that the float run sent; nullopt if it has not finished.
  std::optional<double> elements(const Results& results) const;
  std::string table(const Results& results) const;
  std::string figure(const Results& results) const;

  CodecComparisonPlan plan_;
};

/// Throws InputError if --seeds is given, because `experiment` shows one run of each kind.
void refuse_seeds(const char* experiment, const ExperimentOptions& options);
/// The single value of --workers, or `usual`. Throws InputError if there are several values, or if the value is below
/// `least` or does not divide `batch`.
int64_t choose_workers(const ExperimentOptions& options, int64_t usual, int64_t batch, int64_t least = 2);

/// Text for a page after the name of a data set that differs from `papers`; else empty.
const char* not_the_papers(const DataChoice& data, const char* papers);

}  // namespace tern::reproduce
