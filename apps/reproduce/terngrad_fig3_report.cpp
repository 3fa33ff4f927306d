#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tern/apps/reproduce/accuracy_cells.h"
#include "tern/apps/reproduce/markdown.h"
#include "tern/apps/reproduce/sample.h"
#include "tern/apps/reproduce/terngrad_fig3.h"
#include "tern/trainer/report/chart.h"

namespace tern {
namespace {

using namespace trainer;

/// Section 4.1: "The maximum accuracy gain is 0.15% and the maximum accuracy loss is 0.22%", over all of Figure 3. The
/// paper prints no other number of it.
constexpr double kPaperGain = 0.15, kPaperLoss = 0.22;

/// How far a loss of accuracy lies outside of the paper's range.
std::string beyond_cell(double loss) {
  if (loss > kPaperLoss) return fmt::format("{:.2f} lost", loss - kPaperLoss);
  if (loss < -kPaperGain) return fmt::format("{:.2f} gained", -kPaperGain - loss);
  return "within";
}

/// Accuracies of all seeds at a place of the x axis.
struct Place {
  double x;
  int64_t steps;
  std::vector<double> values;
};

/// A dot at the mean of each place, between the ends of a bar; a line joins those of equally many steps.
void add_line(Chart& chart, const char* label, const char* color, const std::vector<Place>& places) {
  std::map<int64_t, Series> lines;
  for (const auto& [x, steps, values] : places) {
    if (values.empty()) continue;
    Series& line =
        lines.try_emplace(steps, Series{.label = "", .color = color, .points = {}, .markers = true}).first->second;
    line.points.emplace_back(x, summarize(values).mean);
    const auto [low, high] = std::ranges::minmax(values);
    chart.series.push_back({.label = "", .color = color, .points = {{x, low}, {x, high}}, .opacity = 0.4});
  }
  for (const auto& [steps, line] : lines) chart.series.push_back(line);
  chart.series.push_back({.label = label, .color = color, .points = {}});
}

/// One range for all panels, not so narrow that a difference of seeds looks like much.
void share_range(std::vector<Chart>& charts) {
  constexpr double kLeast = 1;
  std::vector<Series> lines;
  for (const Chart& chart : charts) lines.insert(lines.end(), chart.series.begin(), chart.series.end());
  const auto [low, high] = extent(lines).value_or(std::pair{99.5, 99.5});
  const double margin = std::max(0.1 * (high - low), (kLeast - (high - low)) / 2);
  for (Chart& chart : charts) chart.y_range = {low - margin, high + margin};
}

}  // namespace

std::string TernGradFigure3::setting() const {
  return fmt::format(
      "LeNet of the TernGrad paper on {}, total batch 64, polynomial learning rate of power 0.5 from {} to zero, "
      "weight decay 0.0005, evaluated with parameters averaged at a decay of 0.9999 (section 4). Ternary: "
      "`--codec ternary` (clipping at 2.5 σ, layer by layer, all layers), `--exchange server`, which shares the "
      "scalers as the paper does. Float: one process with the whole batch; sharing it among workers changes only the "
      "order of float sums.",
      data_.name == "mnist" ? "MNIST" : "generated digits, **not on the paper's MNIST**",
      "0.01 (momentum) or 0.1 (vanilla)");
}

std::string TernGradFigure3::table(const Rule& rule, const Results& results) const {
  std::vector<std::vector<std::string>> rows = {
      {"workers", "steps", "float, %", "ternary, %", "float − ternary, points", "the paper's", "beyond the paper's"}};
  for (const Point& point : points_) {
    const auto baseline = accuracies(rule, point, 0, results),
               ternary = accuracies(rule, point, point.workers, results);
    const bool both = !baseline.empty() && !ternary.empty();
    const Sample first = summarize(baseline), second = summarize(ternary);
    rows.push_back({std::to_string(point.workers), std::to_string(point.iterations),
                    accuracy_cell(baseline, point.seeds), accuracy_cell(ternary, point.seeds),
                    both ? difference_cell(first, second) : "–", fmt::format("−{} to +{}", kPaperGain, kPaperLoss),
                    both && point.iterations == kPaperIterations ? beyond_cell(first.mean - second.mean) : "–"});
  }
  return markdown_table(rows);
}

std::string TernGradFigure3::figure(const Results& results) const {
  const int64_t usual = points_.front().iterations;
  std::vector<Chart> charts;
  for (const Rule& rule : rules()) {
    Chart chart = {.title = std::string(rule.title) + ": test accuracy", .x_label = "workers", .series = {}};
    chart.y_suffix = " %";
    std::vector<Place> baseline, ternary;
    for (size_t i = 0; i < points_.size(); ++i) {
      const Point& point = points_[i];
      const auto x = static_cast<double>(i);
      std::string tick = std::to_string(point.workers);
      if (point.iterations != usual) tick += " (" + tick_label(static_cast<double>(point.iterations)) + " steps)";
      chart.x_ticks.emplace_back(x, tick);
      baseline.push_back({x - 0.05, point.iterations, accuracies(rule, point, 0, results)});
      ternary.push_back({x + 0.05, point.iterations, accuracies(rule, point, point.workers, results)});
    }
    add_line(chart, "float", kBlue, baseline);
    add_line(chart, "ternary", kOrange, ternary);
    chart.x_range = {-0.5, static_cast<double>(points_.size()) - 0.5};
    charts.push_back(chart);
  }
  share_range(charts);
  return draw_charts(
      "TernGrad, Figure 3: LeNet by number of workers",
      fmt::format("{} · total batch 64 · {} steps · means of the seeds, bars from the lowest to the highest",
                  data_.name, usual),
      charts);
}

Report TernGradFigure3::report(const Results& results) const {
  std::string text = setting() + '\n';
  if (std::ranges::any_of(points_, [](const Point& point) { return point.iterations != kPaperIterations; }))
    text += fmt::format("\nThe paper trains for {} steps: its range says nothing of rows of another length.\n",
                        kPaperIterations);
  for (const Rule& rule : rules()) text += fmt::format("\n## {}\n\n{}", rule.title, table(rule, results));
  return {.text = text, .figures = {{"accuracy.svg", figure(results)}}};
}

}  // namespace tern
