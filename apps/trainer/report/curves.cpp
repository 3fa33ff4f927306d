#include "tern/trainer/report/curves.h"

#include <fmt/format.h>

#include <algorithm>
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
Chart make_chart(const char* title, const Points& training, const Points& test) {
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

std::pair<double, double> accuracy_range(const Chart& chart) {
  const auto [low, high] = clear_extent(chart).value_or(std::pair{0.0, 100.0});
  const double margin = std::max(0.5, (high - low) * 0.05);
  return {std::max(0.0, low - margin), std::min(100.0, high + margin)};
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
}

void Curves::stepped(const StepReport& report) {
  if (std::isfinite(report.loss)) losses_.emplace_back(static_cast<double>(report.step), report.loss);
  accuracies_.emplace_back(static_cast<double>(report.step), 100 * report.accuracy);
}

void Curves::evaluated(const EvaluationReport& report) {
  if (std::isfinite(report.loss)) test_losses_.emplace_back(static_cast<double>(report.step), report.loss);
  test_accuracies_.emplace_back(static_cast<double>(report.step), 100 * report.accuracy);
  draw();
}

void Curves::draw() const {
  Chart loss = make_chart("Loss", losses_, test_losses_);
  loss.y_scale = Scale::logarithmic;
  loss.y_range = loss_range(loss);
  Chart accuracy = make_chart("Accuracy", accuracies_, test_accuracies_);
  accuracy.y_suffix = " %";
  accuracy.y_range = accuracy_range(accuracy);
  Chart charts[] = {loss, accuracy};
  if (!losses_.empty())
    for (Chart& chart : charts) chart.x_range = {losses_.front().first - 1, losses_.back().first};
  const std::string svg = draw_charts(heading_, subheading_, charts);
  AtomicFile file(path_);
  file.write(std::as_bytes(std::span(svg)));
  file.commit();
}

}  // namespace tern::trainer
