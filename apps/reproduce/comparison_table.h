#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/experiment.h"

namespace tern::reproduce {

/// A row of a table of accuracies, trained once for each seed.
struct ComparisonRow {
  Run run;            ///< without its seed; `name` is what the seed's is added to, `columns` are the row's first cells
  std::string label;  ///< in the figure
  std::optional<double> published;         ///< accuracy in percent
  std::optional<int64_t> published_steps;  ///< that it took; other rows are marked as shortened
};

/// Rows that differ in how gradients travel; the first is what the others are compared with.
struct ComparisonGroup {
  std::string title;
  std::vector<ComparisonRow> rows;
};

/// A table that compares ways of training by final test accuracy, beside what a paper has published, and draws how they
/// got there.
class ComparisonTable final : public Experiment {
 public:
  struct Content {
    std::string heading;  ///< of the figure
    std::string setting;  ///< Markdown: how all rows are trained
    int64_t seeds = 1;
    bool papers_data = true;  ///< otherwise accuracies and the paper's have no difference that says anything
    std::vector<ComparisonGroup> groups;
  };

  explicit ComparisonTable(Content content) : content_(std::move(content)) {}
  std::vector<Run> runs() const override;
  Report report(const Results& results) const override;

 private:
  std::vector<double> accuracies(const ComparisonRow& row, const Results& results) const;
  std::vector<std::string> cells(const ComparisonGroup& group, const ComparisonRow& row, const Results& results) const;
  /// Of the first seed that has ended, if its workers sent any.
  std::string megabytes_cell(const ComparisonRow& row, const Results& results) const;
  bool is_shortened() const;
  std::string figure(const Results& results) const;

  Content content_;
};

}  // namespace tern::reproduce
