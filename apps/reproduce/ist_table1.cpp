#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/ist_training.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

/// The seconds of the paper's table, by method and by 2, 4 and 8 machines.
struct PaperRow {
  double accuracy;
  double seconds[3][3];
};

constexpr int64_t kPaperWorkers[] = {2, 4, 8};
constexpr PaperRow kSpeechSeconds[] = {{0.63, {{118, 269, 450}, {68, 130, 235}, {35, 28, 24}}},
                                       {0.75, {{759, 1708, 2417}, {444, 742, 1110}, {231, 167, 192}}}};
constexpr PaperRow kResNet18Seconds[] = {{0.85, {{21775, 13689, 6890}, {18769, 12744, 7020}, {15093, 7852, 5241}}},
                                         {0.90, {{54002, 38430, 17853}, {36891, 22198, 12157}, {33345, 16798, 13425}}}};
/// Accuracies that a shortened residual network reaches; the paper has none to compare with.
constexpr double kShortLevels[] = {0.3, 0.4};

/// IST's Table 1 (Yuan et al., section 4): training time in seconds until given test accuracies.
class IstTable1 final : public Experiment {
 public:
  explicit IstTable1(const ExperimentOptions& options) : tasks_(ist_tasks("ist-table1", options)) {
    refuse_seeds("ist-table1", options);
    const std::vector<int64_t> all(std::begin(kPaperWorkers), std::end(kPaperWorkers));
    for (const IstTask& task : tasks_)
      workers_.push_back(
          ist_workers(options, options.quick && task.scope != SubnetScope::fc ? std::vector<int64_t>{2} : all));
  }

  std::vector<Run> runs() const override {
    std::vector<Run> all;
    for (size_t i = 0; i < tasks_.size(); ++i)
      for (const int64_t workers : workers_[i])
        for (const IstMethod& method : ist_methods())
          all.push_back(make_run(tasks_[i], run_of(tasks_[i], method, workers)));
    return all;
  }

  Report report(const Results& results) const override {
    std::string text = ist_setting(tasks_) +
                       "\nThe seconds are those of training until an evaluation first finds the accuracy. An "
                       "evaluation follows each epoch. The column \"÷ IST's\" has these seconds divided by IST's. The "
                       "paper's machines and networks are different, so compare these ratios, not the seconds.\n";
    std::vector<Chart> charts;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      text += fmt::format("\n## {}\n\n{}", tasks_[i].title, table(tasks_[i], workers_[i], results));
      charts.push_back(chart(tasks_[i], workers_[i], results));
    }
    return {.text = text,
            .figures = {
                {"seconds.svg", draw_charts("IST, Table 1: seconds to a test accuracy", ist_links(tasks_), charts)}}};
  }

 private:
  static IstRun run_of(const IstTask& task, const IstMethod& method, int64_t workers) {
    return {.method = &method, .workers = workers, .steps = task.steps(workers)};
  }

  static std::vector<double> levels(const IstTask& task) {
    std::vector<double> found;
    if (task.scope != SubnetScope::fc && task.shortened) return {std::begin(kShortLevels), std::end(kShortLevels)};
    for (const PaperRow& row : task.scope == SubnetScope::fc ? kSpeechSeconds : kResNet18Seconds)
      found.push_back(row.accuracy);
    return found;
  }

  /// The seconds in one of the paper's rows; nullopt if the paper has none.
  static std::optional<double> paper_seconds(const IstTask& task, double accuracy, size_t method, int64_t workers) {
    const auto column = std::ranges::find(kPaperWorkers, workers);
    const auto& rows = task.scope == SubnetScope::fc ? kSpeechSeconds : kResNet18Seconds;
    const auto row = std::ranges::find(rows, accuracy, &PaperRow::accuracy);
    if (column == std::end(kPaperWorkers) || row == std::end(rows)) return std::nullopt;
    return row->seconds[method][column - std::begin(kPaperWorkers)];
  }

  std::optional<double> own_seconds(const IstTask& task, double accuracy, size_t method, int64_t workers,
                                    const Results& results) const {
    const RunResult* result = find_result(results, task, run_of(task, ist_methods()[method], workers));
    return result ? seconds_to(*result, accuracy) : std::nullopt;
  }

  std::string table(const IstTask& task, const std::vector<int64_t>& all_workers, const Results& results) const {
    std::vector<std::vector<std::string>> rows = {
        {"accuracy", "workers", "method", "seconds", "÷ IST's", "the paper's seconds", "÷ its IST's"}};
    constexpr size_t kIst = 2;
    const auto ratio = [](std::optional<double> slow, std::optional<double> fast) {
      return slow && fast ? std::optional(*slow / *fast) : std::nullopt;
    };
    for (const double accuracy : levels(task))
      for (const int64_t workers : all_workers)
        for (size_t method = 0; method <= kIst; ++method) {
          const auto own = own_seconds(task, accuracy, method, workers, results),
                     paper = paper_seconds(task, accuracy, method, workers);
          rows.push_back({fmt::format("{:.2f}", accuracy), std::to_string(workers), ist_methods()[method].title,
                          cell(own, 1), cell(ratio(own, own_seconds(task, accuracy, kIst, workers, results)), 2),
                          cell(paper, 0), cell(ratio(paper, paper_seconds(task, accuracy, kIst, workers)), 2)});
        }
    return markdown_table(rows);
  }

  Chart chart(const IstTask& task, const std::vector<int64_t>& workers, const Results& results) const {
    const double accuracy = levels(task).back();
    Chart chart = {.title = fmt::format("{}: seconds to {:.0f} %", task.title, 100 * accuracy),
                   .x_label = "workers",
                   .series = {}};
    double most = 1;
    for (size_t i = 0; i < workers.size(); ++i)
      chart.x_ticks.emplace_back(static_cast<double>(i), std::to_string(workers[i]));
    for (size_t method = 0; method < ist_methods().size(); ++method) {
      const IstMethod& shown = ist_methods()[method];
      Series line = {.label = shown.title, .color = shown.color, .points = {}, .markers = true};
      for (size_t i = 0; i < workers.size(); ++i)
        if (const auto seconds = own_seconds(task, accuracy, method, workers[i], results)) {
          line.points.emplace_back(static_cast<double>(i), *seconds);
          most = std::max(most, *seconds);
        }
      chart.series.push_back(line);
    }
    chart.x_range = {-0.2, static_cast<double>(workers.size()) - 0.8};
    chart.y_range = {0, 1.1 * most};
    return chart;
  }

  std::vector<IstTask> tasks_;
  std::vector<std::vector<int64_t>> workers_;  ///< for each task
};

}  // namespace

ExperimentEntry ist_table1() {
  return {.name = "ist-table1",
          .title = "IST, Table 1: seconds to levels of accuracy",
          .data = "tones, drawn, and with --data-dir CIFAR-10: ./dev data cifar10",
          .time = "tones 40 minutes on 2 cores, ResNet-18 days; with --quick 3 and 7 minutes",
          .device = kAnyDevice,
          .make = make_experiment<IstTable1>};
}

}  // namespace tern::reproduce
