#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/data_choice.h"
#include "tern/apps/reproduce/engine/experiment.h"
#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/quantization.h"
#include "tern/apps/reproduce/robbins_monro.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

constexpr double kCondition = 10, kOffset = 400;
constexpr double kLemmaPlaces[] = {0, 0.5, 0.9, 1, 1.5};  ///< w = this times w*, for Lemma 1

struct Problem {
  const char *name, *title;
  LinearProblem (*make)();
};
constexpr Problem kProblems[] = {
    {"ridge", "ridge regression, 512 drawn examples, 64 dimensions, κ = 10",
     [] { return LinearProblem(LinearLoss::squared, drawn_examples(512, 64, kSeed), kCondition); }},
    {"logistic", "logistic regression, 1000 drawn digits odd or even, 784 dimensions, κ = 10",
     [] { return LinearProblem(LinearLoss::logistic, digit_examples(1000, kSeed), kCondition); }}};

struct Method {
  const char *name, *label, *color;
  CodedStep (*code)(uint64_t seed);
};
constexpr Method kMethods[] = {
    {"float", "float", kBlue, [](uint64_t seed) { return coded_by("none", seed); }},
    {"ternary", "ternary", kOrange, [](uint64_t seed) { return coded_by("ternary:clip=0", seed); }},
    {"clipped", "ternary, clipped at 2.5 σ", kPurple, [](uint64_t seed) { return coded_by("ternary", seed); }},
    {"nearest", "rounded to the nearest", kGrey, [](uint64_t) { return CodedStep(rounded_to_nearest); }}};

std::string run_name(const Problem& problem, const Method& method) {
  return fmt::format("{}-{}", problem.name, method.name);
}
std::string lemma_name(const Problem& problem, const Method& method) {
  return fmt::format("{}-lemma-{}", problem.name, method.name);
}
bool has_lemma(const Method& method) {
  return std::string(method.name) == "ternary" || std::string(method.name) == "nearest";
}

std::string seed_name(int64_t seed) { return fmt::format("seed {}", seed); }

/// The distances of each seed's descent.
Numbers descend(const Problem& problem, const Method& method, int64_t last, int64_t seeds,
                const StudyProgress& progress) {
  const LinearProblem linear = problem.make();
  const LinearProblem::Vector minimizer = linear.minimizer();
  const std::vector<int64_t> steps = rising_steps(last);
  Numbers numbers = {{"step", {steps.begin(), steps.end()}}};
  for (int64_t seed = 1; seed <= seeds; ++seed) {
    const auto number = static_cast<uint64_t>(seed);
    const RobbinsMonro descent = {linear, method.code(number), kOffset, number};
    numbers[seed_name(seed)] = descent.distances(steps, minimizer);
    progress(seed);
  }
  return numbers;
}

/// Both sides of equation (25) at points between the start and beyond the minimum.
Numbers compare_sides(const Problem& problem, const Method& method, int64_t draws, const StudyProgress& progress) {
  const LinearProblem linear = problem.make();
  const LinearProblem::Vector minimizer = linear.minimizer();
  Numbers numbers;
  for (const double place : kLemmaPlaces) {
    LinearProblem::Vector w = minimizer;
    for (double& value : w) value *= place;
    const LemmaPoint point = lemma_point(linear, method.code(kSeed), w, minimizer, draws);
    numbers["distance"].push_back(point.distance);
    numbers["left"].push_back(point.left.mean);
    numbers["left_error"].push_back(point.left.standard_error());
    numbers["right"].push_back(point.right);
    progress(std::ssize(numbers["distance"]));
  }
  return numbers;
}

/// TernGrad's Lemma 1 and Theorem 1 (Wen et al., 2017, section 3.2): SGD with unbiased ternary gradients and steps as
/// Robbins and Monro's converges almost surely.
class TernGradTheorem1 final : public Experiment {
 public:
  explicit TernGradTheorem1(const ExperimentOptions& options)
      : steps_(options.quick ? 10'000 : 100'000), seeds_(options.quick ? 2 : 5), draws_(options.quick ? 5 : 40) {
    check_trains_nothing("terngrad-thm1", options);
  }

  std::vector<Run> runs() const override {
    std::vector<Run> all;
    for (const Problem& problem : kProblems)
      for (const Method& method : kMethods) {
        const std::vector<std::pair<std::string, std::string>> columns = {{"problem", problem.name},
                                                                          {"gradients", method.name}};
        all.push_back({.name = run_name(problem, method),
                       .flags = {fmt::format("steps={}", steps_), fmt::format("seeds={}", seeds_)},
                       .places = {},
                       .steps = seeds_,
                       .columns = columns,
                       .study = [&problem, &method, steps = steps_, seeds = seeds_](const StudyProgress& progress) {
                         return descend(problem, method, steps, seeds, progress);
                       }});
        if (!has_lemma(method)) continue;
        all.push_back({.name = lemma_name(problem, method),
                       .flags = {fmt::format("draws={}", draws_)},
                       .places = {},
                       .steps = std::ssize(kLemmaPlaces),
                       .columns = columns,
                       .study = [&problem, &method, draws = draws_](const StudyProgress& progress) {
                         return compare_sides(problem, method, draws, progress);
                       }});
      }
    return all;
  }

  Report report(const Results& results) const override {
    std::string text = fmt::format(
        "Each step draws one example and codes its gradient with tern's codec: w ← w − γ Q(∇f_i(w)), with γ = 2/(ℓ (t "
        "+ {})). So Σ γ is infinite and Σ γ² is not (Assumption 2). ℓ is the strong convexity. Theorem 1 covers "
        "`ternary`, which is unbiased: `--codec ternary:clip=0`. It does not cover the other two. Clipping at 2.5 σ, "
        "the default, is a bias, and so is rounding to the nearest of −s, 0, s. Almost sure convergence means that "
        "every seed's distance goes to 0. The paper prints no measurement.\n",
        kOffset);
    for (const Problem& problem : kProblems)
      text += fmt::format("\n## {}\n\n‖w − w*‖², start = 1; the largest of {} seeds:\n\n{}", problem.title, seeds_,
                          distance_table(problem, results));
    text += fmt::format(
        "\n## Lemma 1\n\nEquation (25) says E{{h' − h}} + 2γ (w − w*)ᵀ∇C(w) = γ² E{{s ‖g‖₁}}, with h = ‖w − w*‖² "
        "before a step and h' after it. This gives Lemma 1's condition if Assumption 3 bounds the right side by A + B "
        "h. Both sides over γ², with all examples and {} draws of the codes:\n\n{}",
        draws_, lemma_table(results));
    return {.text = text, .figures = {{"distance.svg", figure(results)}}};
  }

 private:
  /// The largest distance of all seeds, by step.
  std::vector<double> largest(const Numbers& numbers) const {
    std::vector<double> most(numbers.at("step").size());
    for (int64_t seed = 1; seed <= seeds_; ++seed)
      for (size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], numbers.at(seed_name(seed))[i]);
    return most;
  }

  std::string distance_table(const Problem& problem, const Results& results) const {
    const std::vector<int64_t> steps = rising_steps(steps_);
    std::vector<std::vector<std::string>> rows = {{"step"}};
    for (const Method& method : kMethods) rows[0].push_back(method.label);
    for (size_t i = 0; i < steps.size(); ++i) {
      if (i % 3 != 0 && i + 1 != steps.size()) continue;  // the figure has the others
      rows.push_back({std::to_string(steps[i])});
      for (const Method& method : kMethods) {
        const auto found = results.find(run_name(problem, method));
        rows.back().push_back(found == results.end() ? "–" : fmt::format("{:.2e}", largest(found->second.numbers)[i]));
      }
    }
    return markdown_table(rows);
  }

  static std::string lemma_table(const Results& results) {
    std::vector<std::vector<std::string>> rows = {{"problem", "gradients", "h", "left", "right"}};
    for (const Problem& problem : kProblems)
      for (const Method& method : kMethods) {
        const auto found = results.find(lemma_name(problem, method));
        if (found == results.end()) continue;
        const Numbers& numbers = found->second.numbers;
        for (size_t i = 0; i < std::size(kLemmaPlaces); ++i)
          rows.push_back({problem.name, method.label, fmt::format("{:.4g}", numbers.at("distance")[i]),
                          fmt::format("{:.5f} ± {:.5f}", numbers.at("left")[i], numbers.at("left_error")[i]),
                          fmt::format("{:.5f}", numbers.at("right")[i])});
      }
    return markdown_table(rows);
  }

  std::string figure(const Results& results) const {
    std::vector<Chart> charts;
    for (const Problem& problem : kProblems) {
      Chart chart = {.title = fmt::format("{}: ‖w − w*‖², start = 1", problem.name),
                     .x_label = "step",
                     .series = {},
                     .y_scale = Scale::logarithmic};
      for (double decade = 10; decade <= static_cast<double>(steps_); decade *= 10)
        chart.x_ticks.emplace_back(std::log10(decade), tick_label(decade));
      for (const Method& method : kMethods) {
        const auto found = results.find(run_name(problem, method));
        if (found == results.end()) continue;
        for (int64_t seed = 1; seed <= seeds_; ++seed)
          chart.series.push_back(line(method, found->second.numbers, seed));
      }
      charts.push_back(std::move(chart));
    }
    return draw_charts("TernGrad, Theorem 1: descent with ternary gradients",
                       fmt::format("γ = 2/(ℓ (t + {})) · {} seeds · grey and purple are biased", kOffset, seeds_),
                       charts);
  }

  static Series line(const Method& method, const Numbers& numbers, int64_t seed) {
    Series series = {.label = seed == 1 ? method.label : "", .color = method.color, .points = {}, .opacity = 0.6};
    for (size_t i = 0; i < numbers.at("step").size(); ++i)
      series.points.emplace_back(std::log10(numbers.at("step")[i]), numbers.at(seed_name(seed))[i]);
    return series;
  }

  int64_t steps_, seeds_, draws_;
};

}  // namespace

ExperimentEntry terngrad_thm1() {
  return {.name = "terngrad-thm1",
          .title = "TernGrad, Lemma 1 and Theorem 1: almost sure convergence on convex problems",
          .data = "none",
          .time = "about a minute; with --quick 10 seconds",
          .make = make_experiment<TernGradTheorem1>};
}

}  // namespace tern::reproduce
