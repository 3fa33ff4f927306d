#include "tern/apps/reproduce/comparison_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/sample.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

std::string seed_name(const ComparisonRow& row, int64_t seed) { return fmt::format("{}-seed-{}", row.run.name, seed); }

bool shortened(const ComparisonRow& row) { return row.published_steps && row.run.steps < *row.published_steps; }

Series make_series(const ComparisonRow& row, const RunResult& result, const char* color) {
  Series series = {.label = row.label, .color = color, .points = {}, .markers = result.curve.size() < 30};
  for (const CurvePoint& point : result.curve)
    series.points.emplace_back(static_cast<double>(point.step), 100 * point.score);
  return series;
}

}  // namespace

std::vector<Run> ComparisonTable::runs() const {
  std::vector<Run> all;
  for (int64_t seed = 1; seed <= content_.seeds; ++seed)
    for (const auto& group : content_.groups)
      for (const auto& row : group.rows) {
        if (seed > seeds_of(row)) continue;
        Run run = row.run;
        run.name = seed_name(row, seed);
        run.flags.insert(run.flags.end(), {"--seed", std::to_string(seed)});
        run.columns.emplace_back("seed", std::to_string(seed));
        all.push_back(std::move(run));
      }
  return all;
}

std::vector<const RunResult*> ComparisonTable::results_of(const ComparisonRow& row, const Results& results) const {
  std::vector<const RunResult*> found;
  for (int64_t seed = 1; seed <= seeds_of(row); ++seed)
    if (const auto result = results.find(seed_name(row, seed)); result != results.end())
      found.push_back(&result->second);
  return found;
}

std::vector<double> ComparisonTable::accuracies(const ComparisonRow& row, const Results& results) const {
  std::vector<double> found;
  for (const RunResult* result : results_of(row, results)) found.push_back(100 * result->score);
  return found;
}

std::vector<std::string> ComparisonTable::cells(const ComparisonGroup& group, const ComparisonRow& row,
                                                const Results& results) const {
  const ComparisonRow& base = group.rows.front();
  const auto own = accuracies(row, results), compared = accuracies(base, results);
  const bool is_base = &row == &base;
  std::vector<std::string> cells;
  for (const auto& [column, value] : row.run.columns) cells.push_back(value);
  cells.push_back(std::to_string(row.run.steps) + (shortened(row) ? " (shortened)" : ""));
  cells.push_back(std::to_string(seeds_of(row)));
  cells.push_back(accuracy_cell(own, seeds_of(row)));
  cells.push_back(row.published ? fmt::format("{:.2f}", *row.published) : "–");
  cells.push_back(own.empty() || !row.published || !content_.papers_data
                      ? "–"
                      : fmt::format("{:+.2f}", summarize(own).mean - *row.published));
  cells.push_back(is_base || own.empty() || compared.empty() ? "–"
                                                             : difference_cell(summarize(compared), summarize(own)));
  cells.push_back(
      is_base || !row.published || !base.published ? "–" : fmt::format("{:+.2f}", *base.published - *row.published));
  cells.push_back(megabytes_cell(row, results));
  cells.push_back(minutes_cell(row, results));
  return cells;
}

std::string ComparisonTable::megabytes_cell(const ComparisonRow& row, const Results& results) const {
  const auto found = results_of(row, results);
  if (found.empty() || !found.front()->bytes_sent_payload) return "–";
  return fmt::format(
      "{:.3f}", static_cast<double>(*found.front()->bytes_sent_payload) / static_cast<double>(row.run.steps) / 1e6);
}

std::string ComparisonTable::minutes_cell(const ComparisonRow& row, const Results& results) const {
  std::vector<double> minutes;
  for (const RunResult* result : results_of(row, results)) minutes.push_back(result->seconds / 60);
  return minutes.empty() ? "–" : fmt::format("{:.1f}", summarize(minutes).mean);
}

bool ComparisonTable::is_shortened() const {
  return std::ranges::any_of(content_.groups,
                             [](const auto& group) { return std::ranges::any_of(group.rows, shortened); });
}

std::string ComparisonTable::figure(const Results& results) const {
  std::vector<Chart> charts;
  for (const auto& group : content_.groups) {
    Chart chart = {.title = join({group.title, ": test ", content_.score}), .x_label = "step", .series = {}};
    for (size_t i = 0; i < group.rows.size(); ++i)
      if (const auto found = results.find(seed_name(group.rows[i], 1)); found != results.end())
        chart.series.push_back(make_series(group.rows[i], found->second, kPalette[i % std::size(kPalette)]));
    set_accuracy_axes(chart, group.rows.front().run.steps);
    charts.push_back(chart);
  }
  return draw_charts(content_.heading, "seed 1", charts);
}

Report ComparisonTable::report(const Results& results) const {
  std::vector<std::vector<std::string>> table(1);
  for (const auto& [column, value] : content_.groups.front().rows.front().run.columns) table[0].push_back(column);
  table[0].insert(table[0].end(),
                  {"steps", "seeds", content_.score + ", %", "the paper's, %", "ours − the paper's",
                   "points below the first row", "the paper's", "MB a step, rank 0", "minutes of training"});
  for (const auto& group : content_.groups)
    for (const auto& row : group.rows) table.push_back(cells(group, row, results));
  std::string text = content_.setting + '\n';
  if (is_shortened())
    text +=
        "\nA row that is marked as shortened trained for fewer steps than the paper, so it need not reach the paper's "
        "accuracy. Compare the rows within a group: they show what is lost against the first row.\n";
  return {.text = text + '\n' + markdown_table(table),
          .figures = {{"accuracy.svg", figure(results)}},
          .tables = {},
          .title = content_.heading};
}

}  // namespace tern::reproduce
