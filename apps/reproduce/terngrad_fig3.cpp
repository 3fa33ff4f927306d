#include "tern/apps/reproduce/terngrad_fig3.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tern/apps/reproduce/papers.h"
#include "tern/core/error.h"

namespace tern {
namespace {

constexpr int64_t kBatch = 64;
constexpr int64_t kMany = 64;  ///< workers whose runs take so long that their default is a shorter one

TernGradFigure3::Point make_point(const ExperimentOptions& options, int64_t workers) {
  const bool shorter = workers >= kMany;
  const int64_t iterations = options.quick ? 500 : shorter ? 2000 : TernGradFigure3::kPaperIterations;
  const int64_t seeds = options.quick || shorter ? 1 : 3;
  return {.workers = workers,
          .iterations = options.iterations.value_or(iterations),
          .seeds = options.seeds.value_or(seeds)};
}

std::string run_name(const char* rule, int64_t workers, int64_t iterations, int64_t seed) {
  const std::string gradients = workers == 0 ? "float" : fmt::format("ternary-{}-workers", workers);
  return fmt::format("{}-{}-{}-steps-seed-{}", rule, gradients, iterations, seed);
}

}  // namespace

std::span<const TernGradFigure3::Rule> TernGradFigure3::rules() {
  static const Rule all[] = {
      {.name = "momentum",
       .title = "(a) momentum SGD",
       .flags = {"--optimizer", "momentum", "--momentum", "0.9", "--lr", "0.01"}},
      {.name = "vanilla", .title = "(b) vanilla SGD", .flags = {"--optimizer", "sgd", "--lr", "0.1"}}};
  return all;
}

TernGradFigure3::TernGradFigure3(const ExperimentOptions& options)
    : data_(choose_data("terngrad-fig3", options, {"mnist", "digits"})) {
  std::vector<int64_t> all = options.workers;
  if (all.empty()) all = options.quick ? std::vector<int64_t>{2, 4, 16} : std::vector<int64_t>{2, 4, 16, kMany};
  for (const int64_t workers : std::set(all.begin(), all.end())) {
    check_input(workers >= 1 && kBatch % workers == 0, "--workers: found ", workers,
                ", expected a number that shares the batch of ", kBatch, " equally");
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
        add(make_run(rule, point, 0, seed));
        add(make_run(rule, point, point.workers, seed));
      }
  return all;
}

Run TernGradFigure3::make_run(const Rule& rule, const Point& point, int64_t workers, int64_t seed) const {
  Run run = {.name = run_name(rule.name, workers, point.iterations, seed),
             .program = "train_lenet",
             .flags = {"--variant", "terngrad", "--data", data_.name},
             .places = data_.places(),
             .steps = point.iterations};
  const auto add = [&run](std::initializer_list<std::string> words) { run.flags.insert(run.flags.end(), words); };
  add({"--batch-size", std::to_string(kBatch), "--iterations", std::to_string(point.iterations)});
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
    const auto result = results.find(run_name(rule.name, workers, point.iterations, seed));
    if (result != results.end()) found.push_back(100 * result->second.accuracy);
  }
  return found;
}

std::unique_ptr<Experiment> make_terngrad_fig3(const ExperimentOptions& options) {
  return std::make_unique<TernGradFigure3>(options);
}

}  // namespace tern
