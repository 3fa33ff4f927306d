#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tern/apps/reproduce/markdown.h"
#include "tern/apps/reproduce/qsgd_thm36.h"
#include "tern/apps/reproduce/qsvrg.h"
#include "tern/trainer/report/chart.h"

namespace tern {
namespace {

using namespace trainer;

/// Rounding of doubles hides what is below.
constexpr double kLeastGap = 1e-15;

/// f(y) − f*, relative to the start, against the epoch or what a processor has sent, megabits.
Series descent(const QsgdTheorem36::Method& method, const Numbers& numbers, bool by_bits) {
  Series series = {.label = method.label, .color = method.color, .points = {}, .markers = true};
  if (method.code == nullptr) {  // the others lie upon it
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

}  // namespace

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
      "QSVRG (section 3.3) with K = {} processors, η = 1/(12 L), T = {} κ steps an epoch, Q of s = √n levels: tern's "
      "codecs make and read every message. Each processor sends its share of the full gradient in f32 at an epoch's "
      "start, then T updates. The theorem leaves the constants in η = O(1/L) and T = O(κ) open, and prints no "
      "measurement.\n",
      kProcessors, kStepsPerKappa);
  for (const Problem& problem : problems())
    text +=
        fmt::format("\n## {}\n\nf(y) − f*, relative to the start:\n\n{}", problem.title, gap_table(problem, results));
  text += "\n## Bits\n\nThe bound is (F + 2.8n)(T + 1) + Fn with floats of F = 32 bits.\n\n" + bits_table(results);
  return {.text = text, .figures = {{"qsvrg.svg", figure(results)}}, .tables = {{"qsvrg.csv", csv(results)}}};
}

}  // namespace tern
