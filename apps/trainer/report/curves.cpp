#include "tern/trainer/report/curves.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>

#include "tern/core/atomic_file.h"
#include "tern/core/error.h"
#include "tern/trainer/report/chart.h"

namespace tern::trainer {
namespace {

using Points = Curves::Points;

constexpr std::string_view kBegin = "<metadata>", kEnd = "</metadata>";

/// At most about 4,000 points: each is the mean of as many neighbours.
Points thinned(const Points& points) {
  constexpr size_t kMost = 4000;
  const size_t count = (points.size() + kMost - 1) / kMost;
  if (count <= 1) return points;
  Points means;
  for (size_t first = 0; first < points.size(); first += count) {
    const size_t last = std::min(points.size(), first + count);
    Point sum{};
    for (size_t i = first; i < last; ++i) sum = {sum.first + points[i].first, sum.second + points[i].second};
    const auto n = static_cast<double>(last - first);
    means.emplace_back(sum.first / n, sum.second / n);
  }
  return means;
}

/// The points of the curves as JSON: a list of [training, test] for each curve, each a list of [step, value].
std::string written(const std::vector<Curves::Curve>& curves) {
  const auto list = [](const auto& items, const auto& text_of) {
    std::string text = "[";
    for (const auto& item : items) text += (text.size() > 1 ? "," : "") + text_of(item);
    return text + "]";
  };
  const auto point = [](const Point& p) { return fmt::format("[{},{:.6g}]", p.first, p.second); };
  return list(curves, [&](const Curves::Curve& curve) {
    return "[" + list(thinned(curve.training), point) + "," + list(curve.test, point) + "]";
  });
}

/// A chart with the training values as a faint line, their moving average, and the evaluations.
Chart make_chart(const std::string& title, const Points& training, const Points& test) {
  return {.title = title,
          .x_label = "step",
          .series = {{.label = "each step", .color = kBlue, .points = training, .width = 1, .opacity = 0.25},
                     {.label = "smoothed", .color = kBlue, .points = smooth(training)},
                     {.label = "test", .color = kOrange, .points = test, .markers = true}}};
}

/// The range of all lines except the faint one, whose lowest losses may lie far below them.
std::pair<double, double> loss_range(const Chart& chart) {
  constexpr double kLeast = 1e-6;
  const auto found = extent(std::span(chart.series).subspan(1));
  if (!found || found->second <= kLeast) return {1e-3, 10};
  return {std::max(found->first, kLeast) / 1.6, found->second * 1.3};
}

std::pair<double, double> score_range(const Chart& chart, bool is_share) {
  const auto [low, high] = extent(chart.series).value_or(std::pair{0.0, is_share ? 100.0 : 1.0});
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

Points smooth(const Points& points) {
  const auto count = static_cast<int64_t>(points.size()), reach = std::max<int64_t>(4, count / 100);
  // The sums of 1, x, y, x² and xy before each point, with x relative to the first point.
  struct Sums {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  };
  std::vector<Sums> before(1);
  for (const auto& [step, y] : points) {
    const double x = step - points.front().first;
    const Sums& last = before.back();
    before.push_back({last.n + 1, last.x + x, last.y + y, last.xx + x * x, last.xy + x * y});
  }
  const auto [least, greatest] = std::ranges::minmax_element(points, {}, &Point::second);
  Points smoothed;
  for (int64_t i = 0; i < count; ++i) {
    const Sums& from = before[static_cast<size_t>(std::max<int64_t>(0, i - reach))];
    const Sums& to = before[static_cast<size_t>(std::min(count, i + reach + 1))];
    const double n = to.n - from.n, x = (to.x - from.x) / n, y = (to.y - from.y) / n,
                 variance = (to.xx - from.xx) / n - x * x, covariance = (to.xy - from.xy) / n - x * y;
    const double step = points[static_cast<size_t>(i)].first;
    const double slope = variance > 0 ? covariance / variance : 0;
    const double value = y + slope * (step - points.front().first - x);
    smoothed.emplace_back(step, std::clamp(value, least->second, greatest->second));
  }
  return smoothed;
}

void Curves::started(const RunStart& run) {
  heading_ = run.application;
  subheading_ = describe(run.settings);
  scores_ = run.scores;
  curves_.assign(1 + scores_.size(), {});
  if (run.settings.resume) read_earlier_parts(run.first_step);
}

/// Takes the points up to the step of the checkpoint. A file without points, for example of another program, has none.
void Curves::read_earlier_parts(int64_t last_step) {
  std::ifstream file(path_, std::ios::binary);
  const std::string svg(std::istreambuf_iterator<char>(file), {});
  const size_t begin = svg.rfind(kBegin), end = svg.rfind(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return;
  const auto kept =
      nlohmann::json::parse(svg.substr(begin + kBegin.size(), end - begin - kBegin.size()), nullptr, false);
  std::vector<Curve> found;
  try {
    for (const auto& curve : kept) found.push_back({curve.at(0).get<Points>(), curve.at(1).get<Points>()});
  } catch (const nlohmann::json::exception&) {
    return;
  }
  if (found.size() != curves_.size()) return;
  const auto later = [&](const Point& point) { return point.first > static_cast<double>(last_step); };
  for (Curve& curve : found)
    for (Points* points : {&curve.training, &curve.test}) std::erase_if(*points, later);
  curves_ = std::move(found);
}

void Curves::add(Points Curve::*points, int64_t step, double loss, const std::vector<double>& scores) {
  for (size_t i = 0; i < curves_.size(); ++i) {
    const double value = i == 0 ? loss : scores_[i - 1].shown_factor() * scores[i - 1];
    if (!std::isfinite(value)) continue;
    Points& own = curves_[i].*points;
    // A resumed run may repeat the evaluation of the step at which it resumes.
    if (!own.empty() && own.back().first == static_cast<double>(step)) own.pop_back();
    own.emplace_back(static_cast<double>(step), value);
  }
}

void Curves::stepped(const StepReport& report) { add(&Curve::training, report.step, report.loss, report.scores); }

void Curves::evaluated(const EvaluationReport& report) {
  add(&Curve::test, report.step, report.loss, report.scores);
  draw();
}

void Curves::draw() const {
  std::vector<Chart> charts = {make_chart("Loss", curves_[0].training, curves_[0].test)};
  charts[0].y_scale = Scale::logarithmic;
  charts[0].y_range = loss_range(charts[0]);
  for (size_t i = 0; i < scores_.size(); ++i) {
    const auto& [training, test] = curves_[i + 1];
    Chart& chart = charts.emplace_back(make_chart(capitalized(scores_[i].name), training, test));
    if (!scores_[i].unit.empty()) chart.y_suffix = " " + scores_[i].unit;
    chart.y_range = score_range(chart, scores_[i].unit == "%");
  }
  if (const Points& steps = curves_[0].training; !steps.empty())
    for (Chart& chart : charts) chart.x_range = {steps.front().first - 1, steps.back().first};
  std::string svg = draw_charts(heading_, subheading_, charts);
  svg.insert(svg.rfind("</svg>"), join({kBegin, written(curves_), kEnd, "\n"}));
  AtomicFile file(path_);
  file.write(std::as_bytes(std::span(svg)));
  file.commit();
}

}  // namespace tern::trainer
