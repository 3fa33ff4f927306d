#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/data_choice.h"
#include "tern/apps/reproduce/engine/experiment.h"
#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/sample.h"
#include "tern/core/error.h"
#include "tern/networks/lenet.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

/// TernGrad's Figure 3 (Wen et al., 2017, section 4.1): LeNet on MNIST with (a) momentum SGD and (b) vanilla SGD.
/// Compares ternary gradients of N workers that share a batch of 64 with float gradients. The float baseline is one
/// process with the whole batch: without batch norm, the mean of the gradients of N equal shares is the batch's
/// gradient for every N, up to the order of float sums.
class TernGradFigure3 final : public Experiment {
 public:
  /// One kind of SGD: a panel of the figure.
  struct Rule {
    const char* name;   ///< part of the names of runs
    const char* title;  ///< title of the panel
    std::vector<std::string> flags;
  };
  /// A number of workers, with the number of seeds.
  struct Point {
    int64_t workers, seeds;
  };

  static constexpr int64_t kPaperIterations = 10000;

  /// Throws InputError with the option if one is invalid.
  explicit TernGradFigure3(const ExperimentOptions& options);

  static std::span<const Rule> rules();
  std::vector<Run> runs() const override;
  Report report(const Results& results) const override;

 private:
  Run make_run(const Rule& rule, int64_t workers, int64_t seed) const;
  /// Accuracies in percent, of the seeds that have finished. `workers` is 0 for the float baseline.
  std::vector<double> accuracies(const Rule& rule, const Point& point, int64_t workers, const Results& results) const;
  std::string table(const Rule& rule, const Results& results) const;
  std::string figure(const Results& results) const;
  std::string setting() const;

  DataChoice data_;
  int64_t iterations_;
  std::vector<Point> points_;  ///< in increasing order of workers
};

constexpr int64_t kWholeBatch = 64;
constexpr int64_t kMany = 32;  ///< from this number of workers on, one seed by default, because a run takes long

TernGradFigure3::Point make_point(const ExperimentOptions& options, int64_t workers) {
  return {.workers = workers, .seeds = options.seeds.value_or(options.quick || workers >= kMany ? 1 : 3)};
}

std::string run_name(const char* rule, int64_t workers, int64_t iterations, int64_t seed) {
  const std::string gradients = workers == 0 ? "float" : fmt::format("ternary-{}-workers", workers);
  return fmt::format("{}-{}-{}-steps-seed-{}", rule, gradients, iterations, seed);
}

std::span<const TernGradFigure3::Rule> TernGradFigure3::rules() {
  static const Rule all[] = {
      {.name = "momentum",
       .title = "(a) momentum SGD",
       .flags = {"--optimizer", "momentum", "--momentum", "0.9", "--lr", "0.01"}},
      {.name = "vanilla", .title = "(b) vanilla SGD", .flags = {"--optimizer", "sgd", "--lr", "0.1"}}};
  return all;
}

TernGradFigure3::TernGradFigure3(const ExperimentOptions& options)
    : data_(choose_data("terngrad-fig3", options, {"mnist", "digits"})),
      iterations_(options.iterations.value_or(options.quick ? 500 : kPaperIterations)) {
  std::vector<int64_t> all = options.workers;
  if (all.empty()) all = options.quick ? std::vector<int64_t>{2, 4, 16} : std::vector<int64_t>{2, 4, 8, 16, 32, 64};
  for (const int64_t workers : std::set(all.begin(), all.end())) {
    check_input(workers >= 1 && kWholeBatch % workers == 0, "--workers: found ", workers,
                ", expected a number that shares the batch of ", kWholeBatch, " equally");
    points_.push_back(make_point(options, workers));
  }
}

std::vector<Run> TernGradFigure3::runs() const {
  std::vector<Run> all;
  std::set<std::string> names;
  const auto add = [&](Run run) {
    if (names.insert(run.name).second) all.push_back(std::move(run));
  };
  const int64_t seeds = std::ranges::max(points_, {}, &Point::seeds).seeds;
  for (int64_t seed = 1; seed <= seeds; ++seed)
    for (const Point& point : points_)
      for (const Rule& rule : rules()) {
        if (seed > point.seeds) continue;
        add(make_run(rule, 0, seed));
        add(make_run(rule, point.workers, seed));
      }
  return all;
}

Run TernGradFigure3::make_run(const Rule& rule, int64_t workers, int64_t seed) const {
  Run run = {.name = run_name(rule.name, workers, iterations_, seed),
             .program = networks::lenet().program(),
             .flags = {"--variant", "terngrad", "--data", data_.name},
             .places = data_.places(),
             .steps = iterations_};
  const auto add = [&run](std::initializer_list<std::string> words) { run.flags.insert(run.flags.end(), words); };
  add({"--batch-size", std::to_string(kWholeBatch), "--iterations", std::to_string(iterations_)});
  run.flags.insert(run.flags.end(), rule.flags.begin(), rule.flags.end());
  add({"--lr-schedule", "poly", "--lr-power", "0.5", "--weight-decay", "0.0005", "--ema-decay", "0.9999"});
  add({"--seed", std::to_string(seed)});
  if (workers > 0)
    add({"--workers", std::to_string(workers), "--transport", "inproc", "--codec", "ternary", "--exchange", "server"});
  run.columns = {{"rule", rule.name},
                 {"gradients", workers == 0 ? "float" : "ternary"},
                 {"workers", std::to_string(std::max<int64_t>(workers, 1))},
                 {"seed", std::to_string(seed)}};
  return run;
}

std::vector<double> TernGradFigure3::accuracies(const Rule& rule, const Point& point, int64_t workers,
                                                const Results& results) const {
  std::vector<double> found;
  for (int64_t seed = 1; seed <= point.seeds; ++seed) {
    const auto result = results.find(run_name(rule.name, workers, iterations_, seed));
    if (result != results.end()) found.push_back(100 * result->second.score);
  }
  return found;
}

/// Section 4.1: "The maximum accuracy gain is 0.15% and the maximum accuracy loss is 0.22%", over all of Figure 3. The
/// paper prints no other number for this figure.
constexpr double kPaperGain = 0.15, kPaperLoss = 0.22;

/// How far a loss of accuracy is outside the paper's range.
std::string beyond_cell(double loss) {
  if (loss > kPaperLoss) return fmt::format("{:.2f} lost", loss - kPaperLoss);
  if (loss < -kPaperGain) return fmt::format("{:.2f} gained", -kPaperGain - loss);
  return "within";
}

/// The accuracies of all seeds at one place of the x axis.
struct Place {
  double x;
  std::vector<double> values;
};

/// Draws a dot at the mean and a bar from the lowest to the highest value of each place. A line joins the means.
void add_line(Chart& chart, const char* label, const char* color, const std::vector<Place>& places) {
  Series line = {.label = label, .color = color, .points = {}, .markers = true};
  for (const auto& [x, values] : places) {
    if (values.empty()) continue;
    line.points.emplace_back(x, summarize(values).mean);
    const auto [low, high] = std::ranges::minmax(values);
    chart.series.push_back({.label = "", .color = color, .points = {{x, low}, {x, high}}, .opacity = 0.4});
  }
  chart.series.push_back(line);
}

/// Sets one range for all panels. It is wide enough that differences between seeds do not look large.
void share_range(std::vector<Chart>& charts) {
  constexpr double kLeast = 1;
  std::vector<Series> lines;
  for (const Chart& chart : charts) lines.insert(lines.end(), chart.series.begin(), chart.series.end());
  const auto [low, high] = extent(lines).value_or(std::pair{99.5, 99.5});
  const double margin = std::max(0.1 * (high - low), (kLeast - (high - low)) / 2);
  for (Chart& chart : charts) chart.y_range = {low - margin, high + margin};
}

std::string TernGradFigure3::setting() const {
  return fmt::format(
      "LeNet of the TernGrad paper on {}, total batch 64, weight decay 0.0005. The learning rate falls from {} to zero "
      "as a polynomial of power 0.5. The evaluated parameters are averages with a decay of 0.9999 (section 4). Ternary "
      "is `--codec ternary` (clipping at 2.5 σ, layer by layer, all layers) with `--exchange server`, which shares the "
      "scalers as the paper does. Float is one process with the whole batch. If workers shared the batch, only the "
      "order of float sums would change.",
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
    rows.push_back({std::to_string(point.workers), std::to_string(iterations_), accuracy_cell(baseline, point.seeds),
                    accuracy_cell(ternary, point.seeds), both ? difference_cell(first, second) : "–",
                    fmt::format("−{} to +{}", kPaperGain, kPaperLoss),
                    both && iterations_ == kPaperIterations ? beyond_cell(first.mean - second.mean) : "–"});
  }
  return markdown_table(rows);
}

std::string TernGradFigure3::figure(const Results& results) const {
  std::vector<Chart> charts;
  for (const Rule& rule : rules()) {
    Chart chart = {.title = std::string(rule.title) + ": test accuracy", .x_label = "workers", .series = {}};
    chart.y_suffix = " %";
    std::vector<Place> baseline, ternary;
    for (size_t i = 0; i < points_.size(); ++i) {
      const Point& point = points_[i];
      const auto x = static_cast<double>(i);
      chart.x_ticks.emplace_back(x, std::to_string(point.workers));
      baseline.push_back({x - 0.05, accuracies(rule, point, 0, results)});
      ternary.push_back({x + 0.05, accuracies(rule, point, point.workers, results)});
    }
    add_line(chart, "float", kBlue, baseline);
    add_line(chart, "ternary", kOrange, ternary);
    chart.x_range = {-0.5, static_cast<double>(points_.size()) - 0.5};
    charts.push_back(chart);
  }
  share_range(charts);
  std::string few;  // the points that have fewer seeds than the first one
  for (const Point& point : points_)
    if (point.seeds < points_.front().seeds) few += fmt::format("{}{}", few.empty() ? "" : ", ", point.workers);
  if (!few.empty()) few = fmt::format(" (fewer for {} workers)", few);
  return draw_charts(
      "TernGrad, Figure 3: LeNet by number of workers",
      fmt::format("{} · total batch 64 · {} steps · means of the seeds{}, bars from the lowest to the highest",
                  data_.name, iterations_, few),
      charts);
}

Report TernGradFigure3::report(const Results& results) const {
  std::string text = setting() + '\n';
  if (iterations_ != kPaperIterations)
    text += fmt::format("\nThe paper trains for {} steps. Its range does not apply to runs of another length.\n",
                        kPaperIterations);
  for (const Rule& rule : rules()) text += fmt::format("\n## {}\n\n{}", rule.title, table(rule, results));
  return {.text = text, .figures = {{"accuracy.svg", figure(results)}}};
}

}  // namespace

ExperimentEntry terngrad_fig3() {
  return {.name = "terngrad-fig3",
          .title = "TernGrad, Figure 3: LeNet on MNIST, accuracy over the number of workers",
          .data = "MNIST: ./dev data mnist",
          .time = "many hours on 2 cores, because of 32 and 64 workers; with --quick 3 minutes",
          .device = kAnyDevice,
          .make = make_experiment<TernGradFigure3>};
}

}  // namespace tern::reproduce
