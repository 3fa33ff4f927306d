#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tern/apps/reproduce/codec_comparison.h"
#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/ist_training.h"
#include "tern/core/error.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

/// IST's speed-ups over another method that the paper states for its perceptrons, section 4: "IST exhibits a 4.2×
/// speedup compared to local SGD, and 10.6× speedup compared to classical data parallel for the 2-layer Google speech
/// model to reach 77%", 6.1× and 16.6× with 3 layers.
struct Speedup {
  std::string_view network;  ///< IstTask::paper
  TrainingMethod over;
  double times;
};
constexpr double kLevel = 0.77;
constexpr Speedup kPaperSpeedups[] = {{kSpeech2, TrainingMethod::data_parallel, 10.6},
                                      {kSpeech2, TrainingMethod::local_sgd, 4.2},
                                      {kSpeech3, TrainingMethod::data_parallel, 16.6},
                                      {kSpeech3, TrainingMethod::local_sgd, 6.1}};

/// IST's Figure 4 (Yuan et al., section 4): test accuracy over training time.
class IstFigure4 final : public Experiment {
 public:
  explicit IstFigure4(const ExperimentOptions& options) : tasks_(ist_tasks("ist-fig4", options)) {
    refuse_seeds("ist-fig4", options);
    for (const IstTask& task : tasks_) {
      const int64_t paper = task.scope == SubnetScope::fc ? 8 : 4;
      const auto workers = ist_workers(options, {options.quick ? paper / 2 : paper});
      check_input(workers.size() == 1, "--workers: found ", workers.size(), " numbers, expected 1");
      workers_.push_back(workers.front());
    }
  }

  std::vector<Run> runs() const override {
    std::vector<Run> all;
    for (size_t i = 0; i < tasks_.size(); ++i)
      for (const IstMethod& method : ist_methods()) {
        const IstRun run = run_by(i, method);
        Run rank = make_rank_run(tasks_[i], run);
        if (!tasks_[i].waits && std::ranges::find(all, rank.name, &Run::name) == all.end())
          all.push_back(std::move(rank));
        all.push_back(timed_run(tasks_[i], run));
      }
    return all;
  }

  Report report(const Results& results) const override {
    std::string text = ist_setting(tasks_) + ist_rounds(tasks_);
    if (!std::ranges::all_of(tasks_, &IstTask::waits))
      text += fmt::format("\n{} It takes the place of seconds here for a network whose messages do not wait.\n",
                          kOwnMachines);
    std::string csv = "task,method,workers,step,seconds,accuracy,loss,bytes_sent\n";
    std::vector<Chart> charts;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      text += fmt::format("\n## {}, {} workers\n\n{}", tasks_[i].title, workers_[i], table(i, results));
      if (tasks_[i].hidden > 0) text += '\n' + speedups(i, results);
      charts.push_back(chart(i, results));
      for (const IstMethod& method : ist_methods())
        if (const RunResult* result = find_result(results, tasks_[i], run_by(i, method)))
          for (const CurvePoint& point : result->curve) {
            const auto at = seconds(i, method, point, results);
            csv += fmt::format("{},{},{},{},{},{},{},{}\n", tasks_[i].name, method.name(), workers_[i], point.step,
                               at ? fmt::format("{:.6g}", *at) : "", point.score, point.loss, point.bytes_sent);
          }
    }
    return {
        .text = text,
        .figures = {{"accuracy.svg", draw_charts("IST, Figure 4: test accuracy over time",
                                                 "every method for as many epochs · a dot is an evaluation", charts)}},
        .tables = {{"curves.csv", csv}}};
  }

 private:
  IstRun run_by(size_t task, const IstMethod& method) const { return run_of(tasks_[task], &method, workers_[task]); }

  std::string seconds_name(size_t task) const { return tasks_[task].waits ? "seconds" : "seconds on own machines"; }
  std::optional<double> seconds(size_t task, const IstMethod& method, const CurvePoint& point,
                                const Results& results) const {
    return seconds_at(results, tasks_[task], run_by(task, method), {static_cast<double>(point.step), point.seconds});
  }

  std::string table(size_t task, const Results& results) const {
    std::vector<std::vector<std::string>> rows = {
        {"method", "steps", seconds_name(task), "MB sent by rank 0", "accuracy, %"}};
    for (const IstMethod& method : ist_methods()) {
      const IstRun run = run_by(task, method);
      const RunResult* result = find_result(results, tasks_[task], run);
      if (!result) continue;
      const CurvePoint& end = end_of(tasks_[task].name, *result);
      rows.push_back({method.title, std::to_string(run.steps), cell(seconds(task, method, end, results), 1),
                      fmt::format("{:.1f}", static_cast<double>(end.bytes_sent) / 1e6),
                      fmt::format("{:.2f}", 100 * end.score)});
    }
    return markdown_table(rows);
  }

  std::optional<double> seconds_to_level(size_t task, const IstMethod& method, const Results& results) const {
    const IstRun run = run_by(task, method);
    const RunResult* result = find_result(results, tasks_[task], run);
    const auto found = result ? crossing(*result, kLevel) : std::nullopt;
    return found ? seconds_at(results, tasks_[task], run, *found) : std::nullopt;
  }

  /// The speed-ups of IST in reaching the accuracy of the paper's text.
  std::string speedups(size_t task, const Results& results) const {
    std::vector<std::vector<std::string>> rows = {
        {fmt::format("to {:.0f} %", 100 * kLevel), seconds_name(task), "IST's", "times as fast", "the paper's"}};
    const auto fast = seconds_to_level(task, ist_methods()[kIst], results);
    for (const auto& [network, slower, paper] : kPaperSpeedups)
      for (const IstMethod& method : ist_methods()) {
        if (network != tasks_[task].paper || method.method != slower) continue;
        const auto slow = seconds_to_level(task, method, results);
        const auto times = slow && fast ? std::optional(*slow / *fast) : std::nullopt;
        rows.push_back({method.title, cell(slow, 1), cell(fast, 1), cell(times, 1), fmt::format("{:.1f}", paper)});
      }
    return markdown_table(rows);
  }

  Chart chart(size_t task, const Results& results) const {
    Chart chart = {.title = fmt::format("{}, {} workers", tasks_[task].title, workers_[task]),
                   .x_label = seconds_name(task),
                   .series = {},
                   .y_suffix = " %"};
    for (const IstMethod& method : ist_methods()) {
      Series line = {.label = method.title, .color = method.color, .points = {}, .markers = true};
      if (const RunResult* result = find_result(results, tasks_[task], run_by(task, method)))
        for (const CurvePoint& point : result->curve)
          if (const auto x = seconds(task, method, point, results)) line.points.emplace_back(*x, 100 * point.score);
      chart.series.push_back(line);
    }
    if (const auto seconds = extent(chart.series, &Point::first)) chart.x_range = {0, 1.02 * seconds->second};
    if (const auto percent = extent(chart.series)) chart.y_range = {percent->first - 2, percent->second + 2};
    return chart;
  }

  std::vector<IstTask> tasks_;
  std::vector<int64_t> workers_;  ///< for each task
};

}  // namespace

ExperimentEntry ist_fig4() {
  return {
      .name = "ist-fig4",
      .title = "IST, Figure 4: test accuracy over time, data parallel, local SGD and IST",
      .data = kIstData,
      .time =
          "tones 12 minutes on 2 cores, ResNet-18 of half width 3 hours for 2 workers; with --quick 1 and 8 minutes",
      .device = kAnyDevice,
      .make = make_experiment<IstFigure4>};
}

}  // namespace tern::reproduce
