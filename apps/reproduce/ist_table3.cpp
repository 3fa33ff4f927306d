#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/ist_training.h"
#include "tern/apps/reproduce/sample.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

/// The paper's accuracies in percent, of data parallel, local SGD and IST.
const std::map<std::string_view, std::array<double, 3>> kPaperAccuracy = {{kSpeech2, {79.38, 79.98, 81.53}},
                                                                          {kSpeech3, {79.50, 79.92, 83.27}},
                                                                          {kResNet18, {91.28, 90.87, 91.02}},
                                                                          {kVgg12, {36.88, 36.85, 38.02}}};

/// IST's Table 3 (Yuan et al., section 4): final test accuracy with 2 machines.
class IstTable3 final : public Experiment {
 public:
  explicit IstTable3(const ExperimentOptions& options)
      : tasks_(ist_tasks("ist-table3", options)),
        workers_(ist_workers(options, {2})),
        seeds_(options.seeds.value_or(1)) {}

  std::vector<Run> runs() const override {
    std::vector<Run> all;
    for (const IstTask& task : tasks_)
      for (int64_t seed = 1; seed <= task.seeds(seeds_); ++seed)
        for (const int64_t workers : workers_)
          for (const IstMethod& method : ist_methods())
            all.push_back(make_run(task, run_of(task, &method, workers, seed)));
    return all;
  }

  Report report(const Results& results) const override {
    std::string text = ist_setting(tasks_) + ist_rounds(tasks_);
    std::vector<Chart> charts;
    for (const IstTask& task : tasks_) {
      text += fmt::format("\n## {}\n\n{}", task.title, table(task, results));
      charts.push_back(chart(task, results));
    }
    return {.text = text,
            .figures = {{"accuracy.svg", draw_charts("IST, Table 3: final test accuracy",
                                                     "every method for as many epochs · a dot is a run", charts)}}};
  }

 private:
  /// Accuracies in percent, of the seeds that have finished.
  std::vector<double> accuracies(const IstTask& task, const IstMethod& method, int64_t workers,
                                 const Results& results) const {
    std::vector<double> found;
    for (int64_t seed = 1; seed <= task.seeds(seeds_); ++seed)
      if (const RunResult* result = find_result(results, task, run_of(task, &method, workers, seed)))
        found.push_back(100 * result->score);
    return found;
  }

  std::string table(const IstTask& task, const Results& results) const {
    std::vector<std::vector<std::string>> rows = {{"workers", "method", "epochs", "accuracy, %", "over data parallel",
                                                   "the paper's, %", "over its data parallel"}};
    const auto& paper = kPaperAccuracy.at(task.paper);
    for (const int64_t workers : workers_) {
      const Sample parallel = summarize(accuracies(task, ist_methods()[0], workers, results));
      for (size_t i = 0; i < ist_methods().size(); ++i) {
        const Sample own = summarize(accuracies(task, ist_methods()[i], workers, results));
        const auto epochs = static_cast<double>(task.steps(workers)) / static_cast<double>(task.epoch_steps(workers));
        const bool both = own.count > 0 && parallel.count > 0;
        rows.push_back({std::to_string(workers), ist_methods()[i].title, fmt::format("{:.3g}", epochs), mean_cell(own),
                        both ? fmt::format("{:+.2f}", own.mean - parallel.mean) : "–",
                        workers == 2 ? fmt::format("{:.2f}", paper[i]) : "–",
                        workers == 2 ? fmt::format("{:+.2f}", paper[i] - paper[0]) : "–"});
      }
    }
    return markdown_table(rows);
  }

  Chart chart(const IstTask& task, const Results& results) const {
    Chart chart = {.title = task.title, .x_label = "", .series = {}, .y_suffix = " %"};
    const auto columns = static_cast<double>(ist_methods().size());
    for (size_t i = 0; i < ist_methods().size(); ++i) {
      const auto& [name, title, color] = ist_methods()[i];
      chart.x_ticks.emplace_back(static_cast<double>(i), title);
      for (size_t w = 0; w < workers_.size(); ++w) {
        Series dots = {.label = "", .color = color, .points = {}, .width = 0, .markers = true};
        const double x =
            static_cast<double>(i) + 0.15 * (static_cast<double>(w) - 0.5 * static_cast<double>(workers_.size() - 1));
        for (const double accuracy : accuracies(task, ist_methods()[i], workers_[w], results))
          dots.points.emplace_back(x, accuracy);
        chart.series.push_back(dots);
      }
    }
    chart.x_range = {-0.5, columns - 0.5};
    if (const auto percent = extent(chart.series)) chart.y_range = {percent->first - 1, percent->second + 1};
    return chart;
  }

  std::vector<IstTask> tasks_;
  std::vector<int64_t> workers_;
  int64_t seeds_;
};

}  // namespace

ExperimentEntry ist_table3() {
  return {.name = "ist-table3",
          .title = "IST, Table 3: final accuracy on 2 workers",
          .data = kIstData,
          .time = "tones 18 minutes on 2 cores, ResNet-18 of half width 3 hours; with --quick 2 and 7 minutes",
          .device = kAnyDevice,
          .make = make_experiment<IstTable3>};
}

}  // namespace tern::reproduce
