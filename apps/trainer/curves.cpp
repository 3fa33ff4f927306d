#include "tern/apps/trainer/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "tern/apps/trainer/chart.h"
#include "tern/core/atomic_file.h"

namespace tern {
namespace {

using Points = std::vector<std::pair<double, double>>;

constexpr const char* kLossColor = "#2563eb";
constexpr const char* kTestColor = "#ea580c";

/// An exponential moving average over about a fiftieth of the points, without bias at the start.
Points smooth(const Points& points) {
  const double keep = 1 - 1 / (1 + static_cast<double>(points.size()) / 50);
  double sum = 0, weight = 0;
  Points smoothed;
  for (const auto& [x, y] : points) {
    sum = keep * sum + (1 - keep) * y;
    weight = keep * weight + (1 - keep);
    smoothed.emplace_back(x, sum / weight);
  }
  return smoothed;
}

/// From a little below the lowest to a little above the highest, for a logarithmic axis.
std::pair<double, double> loss_range(std::initializer_list<const Points*> lines) {
  double low = 1e30, high = 1e-6;
  for (const Points* points : lines)
    for (const auto& [x, y] : *points) {
      low = std::min(low, std::max(y, 1e-6));
      high = std::max(high, y);
    }
  return low < high ? std::pair{low / 1.6, high * 1.3} : std::pair{1e-3, 10.0};
}

std::string describe(const TrainSettings& s) {
  return fmt::format("{} · batch {} · {}, lr {} {} · weight decay {} · seed {} · {}", s.data, s.batch_size, s.optimizer,
                     s.lr, s.lr_schedule, s.weight_decay, s.seed, s.precision);
}

}  // namespace

void Curves::started(const RunStart& run) {
  heading_ = run.application;
  subheading_ = describe(run.settings);
}

void Curves::stepped(const StepReport& report) { losses_.emplace_back(static_cast<double>(report.step), report.loss); }

void Curves::evaluated(const EvaluationReport& report) {
  const auto step = static_cast<double>(report.step);
  test_losses_.emplace_back(step, report.loss);
  accuracies_.emplace_back(step, 100 * report.accuracy);
  draw();
}

void Curves::draw() const {
  const Points smoothed = smooth(losses_);
  const Chart loss = {
      .title = "Loss",
      .x_label = "step",
      .series = {{.label = "each step", .color = kLossColor, .points = losses_, .width = 1, .opacity = 0.25},
                 {.label = "smoothed", .color = kLossColor, .points = smoothed},
                 {.label = "test", .color = kTestColor, .points = test_losses_, .markers = true}},
      .y_scale = Scale::logarithmic,
      .y_range = loss_range({&smoothed, &test_losses_})};
  Chart accuracy = {.title = "Accuracy",
                    .x_label = "step",
                    .series = {{.label = "test", .color = kTestColor, .points = accuracies_, .markers = true}},
                    .y_suffix = " %"};
  const auto [worst, best] = std::ranges::minmax(accuracies_, {}, &std::pair<double, double>::second);
  const double margin = std::max(0.5, (best.second - worst.second) * 0.15);
  accuracy.y_range = {std::max(0.0, worst.second - margin), std::min(100.0, best.second + margin)};
  Chart charts[] = {loss, accuracy};
  if (!losses_.empty())
    for (Chart& chart : charts) chart.x_range = {losses_.front().first - 1, losses_.back().first};
  const std::string svg = draw_charts(heading_, subheading_, charts);
  AtomicFile file(path_);
  file.write(std::as_bytes(std::span(svg)));
  file.commit();
}

}  // namespace tern
