#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/data_choice.h"
#include "tern/apps/reproduce/engine/experiment.h"
#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/qsvrg.h"
#include "tern/apps/reproduce/quantization.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

/// Measures QSGD's Theorem 3.6 (Alistarh et al., 2017): the convergence of QSVRG on strongly convex problems against
/// 0.9^p, and its bits against the bound. Compares it with SVRG, the same algorithm with floats.
class QsgdTheorem36 final : public Experiment {
 public:
  struct Problem {
    const char* name;   ///< part of the names of runs
    const char* title;  ///< title of its panel
    LinearLoss loss;
    LinearExamples (*examples)();
    int64_t dimensions;
    double condition;  ///< κ
  };
  /// The coding of the updates.
  struct Method {
    const char* name;   ///< part of the names of runs
    const char* label;  ///< label in figures
    const char* code;   ///< `code` option of qsgd; null: floats
    const char* color;
  };

  static constexpr int64_t kProcessors = 4;  ///< K
  static constexpr int64_t kStepsPerKappa = 45;
  static constexpr double kRateTimesL = 1.0 / 12;

  explicit QsgdTheorem36(const ExperimentOptions& options);

  static std::span<const Problem> problems();
  static std::span<const Method> methods();
  static double steps(const Problem& problem) { return kStepsPerKappa * problem.condition; }
  std::vector<Run> runs() const override;
  Report report(const Results& results) const override;

 private:
  static std::string run_name(const Problem& problem, const Method& method);
  static std::string codec(const Problem& problem, const Method& method);
  Chart chart(const Problem& problem, bool by_bits, const Results& results) const;
  std::string figure(const Results& results) const;
  std::string gap_table(const Problem& problem, const Results& results) const;
  static std::string bits_table(const Results& results);
  static std::string csv(const Results& results);

  int64_t epochs_;
};

/// f(y) − f* at the start and after each epoch, and the bits of each epoch.
Numbers descend(const QsgdTheorem36::Problem& problem, const std::string& codec, int64_t epochs,
                const StudyProgress& progress) {
  const LinearProblem linear(problem.loss, problem.examples(), problem.condition);
  const double least = linear.value(linear.minimizer());
  Qsvrg qsvrg(linear, Qsvrg::Vector(static_cast<size_t>(linear.dimensions())),
              {.processors = QsgdTheorem36::kProcessors,
               .codec = codec,
               .rate = QsgdTheorem36::kRateTimesL / linear.smoothness(),
               .steps = static_cast<int64_t>(QsgdTheorem36::steps(problem)),
               .seed = kSeed});
  Numbers numbers = {{"gap", {linear.value(qsvrg.y()) - least}}, {"bits", {}}};
  for (int64_t epoch = 1; epoch <= epochs; ++epoch) {
    numbers["bits"].push_back(qsvrg.run_epoch());
    numbers["gap"].push_back(linear.value(qsvrg.y()) - least);
    progress(epoch);
  }
  return numbers;
}

std::span<const QsgdTheorem36::Problem> QsgdTheorem36::problems() {
  static const Problem all[] = {{.name = "ridge",
                                 .title = "ridge regression, 512 drawn examples, n = 1024, κ = 10",
                                 .loss = LinearLoss::squared,
                                 .examples = [] { return drawn_examples(512, 1024, kSeed); },
                                 .dimensions = 1024,
                                 .condition = 10},
                                {.name = "logistic",
                                 .title = "logistic regression, 1000 drawn digits odd or even, n = 784, κ = 50",
                                 .loss = LinearLoss::logistic,
                                 .examples = [] { return digit_examples(1000, kSeed); },
                                 .dimensions = 784,
                                 .condition = 50}};
  return all;
}

std::span<const QsgdTheorem36::Method> QsgdTheorem36::methods() {
  static const Method all[] = {
      {.name = "svrg", .label = "SVRG, floats", .code = nullptr, .color = kBlue},
      {.name = "qsvrg-entropy", .label = "QSVRG, entropy", .code = "entropy", .color = kOrange},
      {.name = "qsvrg-elias", .label = "QSVRG, Elias", .code = "elias", .color = kPurple}};
  return all;
}

QsgdTheorem36::QsgdTheorem36(const ExperimentOptions& options) : epochs_(options.quick ? 4 : 8) {
  check_trains_nothing("qsgd-thm3.6", options);
}

std::string QsgdTheorem36::run_name(const Problem& problem, const Method& method) {
  return fmt::format("{}-{}", problem.name, method.name);
}

/// Uses √n levels, rounded to a whole number.
std::string QsgdTheorem36::codec(const Problem& problem, const Method& method) {
  if (method.code == nullptr) return "none";
  const auto levels = std::llround(std::sqrt(static_cast<double>(problem.dimensions)));
  return fmt::format("qsgd:levels={},bucket=0,code={}", levels, method.code);
}

std::vector<Run> QsgdTheorem36::runs() const {
  std::vector<Run> all;
  for (const Problem& problem : problems())
    for (const Method& method : methods()) {
      const std::string spec = codec(problem, method);
      all.push_back({.name = run_name(problem, method),
                     .flags = {fmt::format("problem={}", problem.name), fmt::format("codec={}", spec),
                               fmt::format("kappa={}", problem.condition), fmt::format("epochs={}", epochs_)},
                     .places = {},
                     .steps = epochs_,
                     .columns = {{"problem", problem.name}, {"method", method.name}},
                     .study = [&problem, spec, epochs = epochs_](const StudyProgress& progress) {
                       return descend(problem, spec, epochs, progress);
                     }});
    }
  return all;
}

/// Smaller gaps are hidden by the rounding of doubles.
constexpr double kLeastGap = 1e-15;

/// f(y) − f*, relative to the start, over the epoch or over the megabits that a processor has sent.
Series descent(const QsgdTheorem36::Method& method, const Numbers& numbers, bool by_bits) {
  Series series = {.label = method.label, .color = method.color, .points = {}, .markers = true};
  if (method.code == nullptr) {  // the other lines may cover it
    series.width = 10;
    series.opacity = 0.35;
  }
  double megabits = 0;
  for (size_t p = 0; p < numbers.at("gap").size(); ++p) {
    if (p > 0) megabits += numbers.at("bits")[p - 1] / 1e6;
    const double gap = std::max(numbers.at("gap")[p] / numbers.at("gap")[0], kLeastGap);
    series.points.emplace_back(by_bits ? megabits : static_cast<double>(p), gap);
  }
  return series;
}

std::string QsgdTheorem36::gap_table(const Problem& problem, const Results& results) const {
  std::vector<std::vector<std::string>> rows = {{"epoch p", "0.9^p"}};
  for (const Method& method : methods()) rows[0].push_back(method.label);
  for (int64_t p = 1; p <= epochs_; ++p) {
    std::vector<std::string> row = {std::to_string(p), fmt::format("{:.3f}", std::pow(0.9, p))};
    for (const Method& method : methods()) {
      const auto found = results.find(run_name(problem, method));
      if (found == results.end()) {
        row.push_back("–");
        continue;
      }
      const auto& gap = found->second.numbers.at("gap");
      row.push_back(fmt::format("{:.2e}", gap[static_cast<size_t>(p)] / gap[0]));
    }
    rows.push_back(row);
  }
  return markdown_table(rows);
}

std::string QsgdTheorem36::bits_table(const Results& results) {
  std::vector<std::vector<std::string>> rows = {{"problem", "method", "bits of a processor in an epoch",
                                                 "Theorem 3.6's bound", "beside the bound", "bits per element"}};
  for (const Problem& problem : problems())
    for (const Method& method : methods()) {
      const auto found = results.find(run_name(problem, method));
      if (found == results.end()) continue;
      const auto& bits = found->second.numbers.at("bits");
      const double most = std::ranges::max(bits), n = static_cast<double>(problem.dimensions);
      const double bound = qsvrg_bits_bound(n, steps(problem));
      rows.push_back(
          {problem.name, method.label, fmt::format("{:.0f}", most), fmt::format("{:.0f}", bound),
           method.code == nullptr ? "no bound on floats" : fmt::format("{:+.1f} %", 100 * (most / bound - 1)),
           fmt::format("{:.3f}", (most - 32 * n) / steps(problem) / n)});
    }
  return markdown_table(rows);
}

std::string QsgdTheorem36::csv(const Results& results) {
  std::string text = "problem,method,epoch,gap,bits\n";
  for (const Problem& problem : problems())
    for (const Method& method : methods()) {
      const auto found = results.find(run_name(problem, method));
      if (found == results.end()) continue;
      const Numbers& numbers = found->second.numbers;
      for (size_t p = 0; p < numbers.at("gap").size(); ++p)
        text += fmt::format("{},{},{},{},{}\n", problem.name, method.name, p, numbers.at("gap")[p],
                            p == 0 ? 0 : numbers.at("bits")[p - 1]);
    }
  return text;
}

Chart QsgdTheorem36::chart(const Problem& problem, bool by_bits, const Results& results) const {
  Chart chart = {.title = fmt::format("{}: f(y) − f*, start = 1", problem.name),
                 .x_label = by_bits ? "megabits sent by a processor" : "epoch",
                 .series = {},
                 .y_scale = Scale::logarithmic};
  if (!by_bits) {
    Series promise = {.label = "0.9^p", .color = kGrey, .points = {}, .width = 4};
    for (int64_t p = 0; p <= epochs_; ++p) promise.points.emplace_back(p, std::pow(0.9, p));
    chart.series.push_back(promise);
  }
  for (const Method& method : methods())
    if (const auto found = results.find(run_name(problem, method)); found != results.end())
      chart.series.push_back(descent(method, found->second.numbers, by_bits));
  return chart;
}

std::string QsgdTheorem36::figure(const Results& results) const {
  std::vector<Chart> charts;
  for (const Problem& problem : problems()) charts.push_back(chart(problem, false, results));
  charts.push_back(chart(problems().front(), true, results));
  return draw_charts("QSGD, Theorem 3.6: QSVRG on strongly convex problems",
                     fmt::format("{} processors · η = 1/(12 L) · T = {} κ", kProcessors, kStepsPerKappa), charts);
}

Report QsgdTheorem36::report(const Results& results) const {
  std::string text = fmt::format(
      "QSVRG (section 3.3) with K = {} processors, η = 1/(12 L), T = {} κ steps an epoch, and Q with s = √n levels. "
      "tern's codecs make and read every message. At the start of an epoch, each processor sends its share of the full "
      "gradient in f32. Then it sends T updates. The theorem leaves the constants in η = O(1/L) and T = O(κ) open. The "
      "paper prints no measurement.\n",
      kProcessors, kStepsPerKappa);
  for (const Problem& problem : problems())
    text +=
        fmt::format("\n## {}\n\nf(y) − f*, relative to the start:\n\n{}", problem.title, gap_table(problem, results));
  text += "\n## Bits\n\nThe bound is (F + 2.8n)(T + 1) + Fn with floats of F = 32 bits.\n\n" + bits_table(results);
  return {.text = text, .figures = {{"qsvrg.svg", figure(results)}}, .tables = {{"qsvrg.csv", csv(results)}}};
}

}  // namespace

ExperimentEntry qsgd_thm36() {
  return {.name = "qsgd-thm3.6",
          .title = "QSGD, Theorem 3.6: QSVRG on a strongly convex problem",
          .data = "none",
          .time = "10 seconds",
          .make = make_experiment<QsgdTheorem36>};
}

}  // namespace tern::reproduce
