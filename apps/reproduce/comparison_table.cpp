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

bool shortened(const ComparisonRow& row) { return row.published_steps && row.run.steps != *row.published_steps; }

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
        Run run = row.run;
        run.name = seed_name(row, seed);
        run.flags.insert(run.flags.end(), {"--seed", std::to_string(seed)});
        run.columns.emplace_back("seed", std::to_string(seed));
        all.push_back(std::move(run));
      }
  return all;
}

std::vector<double> ComparisonTable::accuracies(const ComparisonRow& row, const Results& results) const {
  std::vector<double> found;
  for (int64_t seed = 1; seed <= content_.seeds; ++seed)
    if (const auto result = results.find(seed_name(row, seed)); result != results.end())
      found.push_back(100 * result->second.score);
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
  cells.push_back(accuracy_cell(own, content_.seeds));
  cells.push_back(row.published ? fmt::format("{:.2f}", *row.published) : "–");
  cells.push_back(own.empty() || !row.published || !content_.papers_data
                      ? "–"
                      : fmt::format("{:+.2f}", summarize(own).mean - *row.published));
  cells.push_back(is_base || own.empty() || compared.empty() ? "–"
                                                             : difference_cell(summarize(compared), summarize(own)));
  cells.push_back(
      is_base || !row.published || !base.published ? "–" : fmt::format("{:+.2f}", *base.published - *row.published));
  cells.push_back(megabytes_cell(row, results));
  return cells;
}

std::string ComparisonTable::megabytes_cell(const ComparisonRow& row, const Results& results) const {
  for (int64_t seed = 1; seed <= content_.seeds; ++seed)
    if (const auto found = results.find(seed_name(row, seed)); found != results.end())
      if (const auto bytes = found->second.bytes_sent_payload)
        return fmt::format("{:.3f}", static_cast<double>(*bytes) / static_cast<double>(row.run.steps) / 1e6);
  return "–";
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
  table[0].insert(table[0].end(), {"steps", content_.score + ", %", "the paper's, %", "ours − the paper's",
                                   "lost to the first row", "the paper's loss", "MB a step, rank 0"});
  for (const auto& group : content_.groups)
    for (const auto& row : group.rows) table.push_back(cells(group, row, results));
  std::string text = content_.setting + '\n';
  if (is_shortened())
    text +=
        "\nA row that is marked as shortened trained for fewer steps than the paper, so it need not reach the paper's "
        "accuracy. Compare the rows within a group: they show what is lost against the first row.\n";
  return {.text = text + '\n' + markdown_table(table), .figures = {{"accuracy.svg", figure(results)}}};
}

}  // namespace tern::reproduce
