#include "tern/trainer/report/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <span>

#include "tern/core/atomic_file.h"
#include "tern/trainer/report/chart.h"

namespace tern::trainer {
namespace {

using Points = std::vector<Point>;

/// An exponential moving average over about 1/50 of the points, with the bias at the start corrected.
Points smooth(const Points& points) {
  const double keep = 1 - 1 / std::max(8.0, static_cast<double>(points.size()) / 50);
  double sum = 0, weight = 0;
  Points smoothed;
  for (const auto& [x, y] : points) {
    sum = keep * sum + (1 - keep) * y;
    weight = keep * weight + (1 - keep);
    smoothed.emplace_back(x, sum / weight);
  }
  return smoothed;
}

/// A chart with the training values as a faint line, their moving average, and the evaluations.
Chart make_chart(const std::string& title, const Points& training, const Points& test) {
  return {.title = title,
          .x_label = "step",
          .series = {{.label = "each step", .color = kBlue, .points = training, .width = 1, .opacity = 0.25},
                     {.label = "smoothed", .color = kBlue, .points = smooth(training)},
                     {.label = "test", .color = kOrange, .points = test, .markers = true}}};
}

/// The range of all lines except the faint one.
std::optional<std::pair<double, double>> clear_extent(const Chart& chart) {
  return extent(std::span(chart.series).subspan(1));
}

std::pair<double, double> loss_range(const Chart& chart) {
  constexpr double kLeast = 1e-6;
  const auto found = clear_extent(chart);
  if (!found || found->second <= kLeast) return {1e-3, 10};
  return {std::max(found->first, kLeast) / 1.6, found->second * 1.3};
}

std::pair<double, double> score_range(const Chart& chart, bool is_share) {
  const auto [low, high] = clear_extent(chart).value_or(std::pair{0.0, is_share ? 100.0 : 1.0});
  if (!is_share) return {low - 0.05 * (high - low), high + 0.05 * (high - low) + (high == low ? 1e-3 : 0)};
  const double margin = std::max(0.5, (high - low) * 0.05);
  return {std::max(0.0, low - margin), std::min(100.0, high + margin)};
}

/// "Phone error rate", for the title of a chart.
std::string capitalized(std::string name) {
  name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name;
}

std::string describe(const TrainSettings& s) {
  return fmt::format("{} · batch {} · {}, lr {} {} · weight decay {} · seed {} · {}", s.data, s.batch_size,
                     to_string(s.optimizer), s.lr, to_string(s.lr_schedule), s.weight_decay, s.seed,
                     to_string(s.precision));
}

}  // namespace

void Curves::started(const RunStart& run) {
  heading_ = run.application;
  subheading_ = describe(run.settings);
  scores_ = run.scores;
  score_curves_.resize(scores_.size());
}

void Curves::stepped(const StepReport& report) {
  const auto step = static_cast<double>(report.step);
  if (std::isfinite(report.loss)) loss_.training.emplace_back(step, report.loss);
  for (size_t i = 0; i < scores_.size(); ++i)
    if (std::isfinite(report.scores[i]))
      score_curves_[i].training.emplace_back(step, scores_[i].shown_factor() * report.scores[i]);
}

void Curves::evaluated(const EvaluationReport& report) {
  const auto step = static_cast<double>(report.step);
  if (std::isfinite(report.loss)) loss_.test.emplace_back(step, report.loss);
  for (size_t i = 0; i < scores_.size(); ++i)
    if (std::isfinite(report.scores[i]))
      score_curves_[i].test.emplace_back(step, scores_[i].shown_factor() * report.scores[i]);
  draw();
}

void Curves::draw() const {
  std::vector<Chart> charts = {make_chart("Loss", loss_.training, loss_.test)};
  charts[0].y_scale = Scale::logarithmic;
  charts[0].y_range = loss_range(charts[0]);
  for (size_t i = 0; i < scores_.size(); ++i) {
    Chart& chart =
        charts.emplace_back(make_chart(capitalized(scores_[i].name), score_curves_[i].training, score_curves_[i].test));
    if (!scores_[i].unit.empty()) chart.y_suffix = " " + scores_[i].unit;
    chart.y_range = score_range(chart, scores_[i].unit == "%");
  }
  if (!loss_.training.empty())
    for (Chart& chart : charts) chart.x_range = {loss_.training.front().first - 1, loss_.training.back().first};
  const std::string svg = draw_charts(heading_, subheading_, charts);
  AtomicFile file(path_);
  file.write(std::as_bytes(std::span(svg)));
  file.commit();
}

}  // namespace tern::trainer
