#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/experiment.h"

namespace tern::reproduce {

/// A row of a table of accuracies. It is trained once for each seed.
struct ComparisonRow {
  Run run;            ///< without the seed, which is appended to `name`; `columns` are the first cells of the row
  std::string label;  ///< label in the figure
  std::optional<double> published;         ///< accuracy in percent
  std::optional<int64_t> published_steps;  ///< steps in the paper; rows with other steps are marked as shortened
  int64_t most_seeds = std::numeric_limits<int64_t>::max();  ///< fewer than the table's, because a run takes long
};

/// Rows that differ in the codec of the gradients. The others are compared with the first row.
struct ComparisonGroup {
  std::string title;
  std::vector<ComparisonRow> rows;
};

/// A table that compares training methods by their final test accuracy, next to the published values. A figure shows
/// the accuracy over the steps.
class ComparisonTable final : public Experiment {
 public:
  struct Content {
    std::string heading;  ///< heading of the figure
    std::string setting;  ///< Markdown: how all rows are trained
    int64_t seeds = 1;
    std::string score = "accuracy";  ///< what the percentages are
    bool papers_data = true;  ///< same data as the paper; false: leave out the differences from the paper's accuracies
    std::vector<ComparisonGroup> groups;
  };

  explicit ComparisonTable(Content content) : content_(std::move(content)) {}
  std::vector<Run> runs() const override;
  Report report(const Results& results) const override;

 private:
  int64_t seeds_of(const ComparisonRow& row) const { return std::min(content_.seeds, row.most_seeds); }
  /// Of the seeds that have finished.
  std::vector<const RunResult*> results_of(const ComparisonRow& row, const Results& results) const;
  /// In percent.
  std::vector<double> accuracies(const ComparisonRow& row, const Results& results) const;
  std::vector<std::string> cells(const ComparisonGroup& group, const ComparisonRow& row, const Results& results) const;
  /// MB per step of rank 0; "–" if its workers sent nothing.
  std::string megabytes_cell(const ComparisonRow& row, const Results& results) const;
  /// Mean minutes of training.
  std::string minutes_cell(const ComparisonRow& row, const Results& results) const;
  bool is_shortened() const;
  std::string figure(const Results& results) const;

  Content content_;
};

}  // namespace tern::reproduce
