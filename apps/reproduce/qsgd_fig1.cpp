#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tern/apps/reproduce/engine/data_choice.h"
#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/quantization.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

constexpr int64_t kLevels = 5;   ///< s
constexpr int64_t kValues = 51;  ///< number of values |v_i| / ‖v‖ from 0 to 1
constexpr size_t kPictured = 33;
constexpr const char* kLevelColors[] = {kGrey, kBlue, kTeal, kGreen, kOrange, kPurple};
constexpr const char* kRun = "levels";

std::string level_name(int64_t level) { return fmt::format("level {}", level); }

/// The probability of level ℓ/s for |v_i| / ‖v‖ = a (section 3.1): max(0, 1 − |s a − ℓ|).
double probability(double a, int64_t level) {
  return std::max(0.0, 1 - std::abs(a * kLevels - static_cast<double>(level)));
}

/// How often tern's codec draws each level for the first element of the unit vector (a, √(1 − a²)).
Numbers draw_levels(int64_t draws, const StudyProgress& progress) {
  const auto codec = make_codec(fmt::format("qsgd:levels={},bucket=0,norm=l2", kLevels));
  Numbers numbers;
  for (int64_t i = 0; i < kValues; ++i) {
    const double a = static_cast<double>(i) / (kValues - 1);
    const Tensor v = Tensor::from({2}, std::vector{a, std::sqrt(1 - a * a)}).to(DType::f32);
    std::vector<int64_t> counts(kLevels + 1);
    for (int64_t draw = 0; draw < draws; ++draw) {
      const auto step = static_cast<uint32_t>(i * draws + draw);  // different random numbers for each value
      ++counts.at(static_cast<size_t>(drawn_levels(*codec, v, step)[0]));
    }
    numbers["value"].push_back(a);
    for (int64_t level = 0; level <= kLevels; ++level)
      numbers[level_name(level)].push_back(static_cast<double>(counts[static_cast<size_t>(level)]) /
                                           static_cast<double>(draws));
    progress(i + 1);
  }
  return numbers;
}

/// The paper's picture: how often each end of the interval is drawn for one value.
Chart picture(const Numbers& numbers) {
  const double a = numbers.at("value")[kPictured];
  Chart chart = {.title = fmt::format("|v_i| / ‖v‖ = {}: share of draws", a), .x_label = "levels ℓ/s", .series = {}};
  for (int64_t level = 0; level <= kLevels; ++level) {
    const double x = static_cast<double>(level) / kLevels, share = numbers.at(level_name(level))[kPictured];
    chart.x_ticks.emplace_back(x, tick_label(x));
    if (share > 0)
      chart.series.push_back(
          {.label = "", .color = kLevelColors[level], .points = {{x, 0}, {x, share}}, .width = 36, .opacity = 0.85});
  }
  chart.series.push_back({.label = "the value", .color = kInk, .points = {{a, 0}, {a, 1}}});
  chart.x_range = {-0.08, 1.08};
  chart.y_range = {0, 1};
  return chart;
}

Chart probabilities(const Numbers& numbers) {
  Chart chart = {
      .title = "Probability of each level: lines by eq. (4), dots as drawn", .x_label = "|v_i| / ‖v‖", .series = {}};
  const auto& values = numbers.at("value");
  for (int64_t level = 0; level <= kLevels; ++level) {
    Series line = {.label = fmt::format("{}/{}", level, kLevels), .color = kLevelColors[level], .points = {}},
           dots = {.label = "", .color = kLevelColors[level], .points = {}, .width = 0, .markers = true};
    for (size_t i = 0; i < values.size(); ++i) {
      line.points.emplace_back(values[i], probability(values[i], level));
      const double share = numbers.at(level_name(level))[i];
      if (share > 0) dots.points.emplace_back(values[i], share);
    }
    chart.series.push_back(line);
    chart.series.push_back(dots);
  }
  chart.x_range = {0, 1};
  chart.y_range = {0, 1.05};
  return chart;
}

class QsgdFigure1 final : public Experiment {
 public:
  explicit QsgdFigure1(const ExperimentOptions& options) : draws_(options.quick ? 1000 : 10000) {
    check_trains_nothing("qsgd-fig1", options);
  }
  std::vector<Run> runs() const override {
    return {{.name = kRun,
             .flags = {fmt::format("levels={}", kLevels), fmt::format("draws={}", draws_)},
             .places = {},
             .steps = kValues,
             .study = [draws = draws_](const StudyProgress& progress) { return draw_levels(draws, progress); }}};
  }

  Report report(const Results& results) const override {
    if (!results.contains(kRun)) return {};
    const Numbers& numbers = results.at(kRun).numbers;
    const std::string text = fmt::format(
        "Q_s rounds a = |v_i| / ‖v‖ to one of its two neighbours among s = {} levels, so that the expectation is a. "
        "The table has {} draws by `--codec qsgd:levels={},bucket=0,norm=l2` at each of {} values. The paper prints no "
        "numbers here. The probabilities follow from its definition. Of all {} shares, the one that is farthest from "
        "its probability is {:.1f} standard errors away.\n\n",
        kLevels, draws_, kLevels, kValues, kValues * (kLevels + 1), largest_deviation(numbers));
    const Chart charts[] = {picture(numbers), probabilities(numbers)};
    return {
        .text = text + table(numbers),
        .figures = {{"levels.svg", draw_charts("QSGD, Figure 1: stochastic quantization with 5 levels",
                                               fmt::format("{} draws of tern's codec at each value", draws_), charts)}},
        .tables = {{"levels.csv", csv(numbers)}}};
  }

 private:
  /// The largest difference from a probability, in standard errors.
  double largest_deviation(const Numbers& numbers) const {
    double largest = 0;
    for (int64_t level = 0; level <= kLevels; ++level)
      for (size_t i = 0; i < numbers.at("value").size(); ++i) {
        const double p = probability(numbers.at("value")[i], level), share = numbers.at(level_name(level))[i];
        const double error = std::sqrt(p * (1 - p) / static_cast<double>(draws_));
        if (p > 1e-6 && p < 1 - 1e-6) largest = std::max(largest, std::abs(share - p) / error);
      }
    return largest;
  }

  static std::string table(const Numbers& numbers) {
    std::vector<std::vector<std::string>> rows = {
        {"a", "level", "probability, eq. (4)", "share of draws", "difference"}};
    for (const size_t i : {size_t{8}, size_t{25}, kPictured})
      for (int64_t level = 0; level <= kLevels; ++level) {
        const double a = numbers.at("value")[i], share = numbers.at(level_name(level))[i], p = probability(a, level);
        if (share > 0)
          rows.push_back({fmt::format("{:.2f}", a), fmt::format("{}/{}", level, kLevels), fmt::format("{:.4f}", p),
                          fmt::format("{:.4f}", share), fmt::format("{:+.4f}", share - p)});
      }
    return markdown_table(rows);
  }

  static std::string csv(const Numbers& numbers) {
    std::string text = "value,level,probability,share\n";
    for (size_t i = 0; i < numbers.at("value").size(); ++i)
      for (int64_t level = 0; level <= kLevels; ++level)
        text += fmt::format("{},{},{},{}\n", numbers.at("value")[i], level, probability(numbers.at("value")[i], level),
                            numbers.at(level_name(level))[i]);
    return text;
  }

  int64_t draws_;
};

}  // namespace

ExperimentEntry qsgd_fig1() {
  return {.name = "qsgd-fig1",
          .title = "QSGD, Figure 1: stochastic quantization with 5 levels",
          .data = "none",
          .time = "seconds",
          .make = make_experiment<QsgdFigure1>};
}

}  // namespace tern::reproduce
