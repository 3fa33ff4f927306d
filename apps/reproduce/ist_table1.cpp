#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/ist_training.h"
#include "tern/apps/reproduce/sample.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

/// A row of the paper's table: seconds by method and by 2, 4 and 8 machines. It has none for 77 %, which its text
/// names.
struct PaperRow {
  std::string_view network;  ///< IstTask::paper
  double accuracy;
  std::optional<std::array<std::array<double, 3>, 3>> seconds;
};

constexpr int64_t kColumnWorkers[] = {2, 4, 8};
const PaperRow kPaperRows[] = {
    {kSpeech2, 0.63, {{{{118, 269, 450}, {68, 130, 235}, {35, 28, 24}}}}},
    {kSpeech2, 0.75, {{{{759, 1708, 2417}, {444, 742, 1110}, {231, 167, 192}}}}},
    {kSpeech2, 0.77, {}},
    {kSpeech3, 0.63, {{{{376, 1228, 1922}, {182, 586, 1115}, {76, 141, 300}}}}},
    {kSpeech3, 0.75, {{{{4534, 9340, 14886}, {2032, 4107, 6539}, {812, 664, 1161}}}}},
    {kSpeech3, 0.77, {}},
    {kResNet18, 0.85, {{{{21775, 13689, 6890}, {18769, 12744, 7020}, {15093, 7852, 5241}}}}},
    {kResNet18, 0.90, {{{{54002, 38430, 17853}, {36891, 22198, 12157}, {33345, 16798, 13425}}}}},
    {kVgg12, 0.20, {{{{108040, 278542, 504805}, {6900, 14698, 30441}, {3629, 4379, 5954}}}}},
    {kVgg12, 0.26, {{{{225911, 393279, 637188}, {15053, 22055, 39439}, {6189, 7711, 10622}}}}}};
/// Accuracies that a shortened convolutional network reaches; the paper has none to compare with.
constexpr double kShortLevels[] = {0.3, 0.4};

/// How a method first reached an accuracy: means over the seeds.
struct Reached {
  double steps = 0, seconds = 0;
  std::optional<double> own_seconds = {};  ///< on machines of their own
};

/// IST's Table 1 (Yuan et al., section 4): training time in seconds until given test accuracies.
class IstTable1 final : public Experiment {
 public:
  explicit IstTable1(const ExperimentOptions& options)
      : tasks_(ist_tasks("ist-table1", options)),
        seeds_(options.seeds.value_or(1)),
        brief_(options.quick || options.iterations) {
    for (const IstTask& task : tasks_)
      workers_.push_back(
          ist_workers(options, options.quick && task.hidden == 0 ? std::vector<int64_t>{2} : task.usual_workers));
  }

  std::vector<Run> runs() const override {
    std::vector<Run> all;
    std::set<std::string> names;
    const auto add = [&](Run run) {
      if (names.insert(run.name).second) all.push_back(std::move(run));
    };
    for (size_t i = 0; i < tasks_.size(); ++i) {
      const IstTask& task = tasks_[i];
      if (task.hidden > 0)
        for (const int64_t workers : workers_[i])
          for (const IstMethod& method : ist_methods()) add(make_rank_run(task, run_of(task, &method, workers, 1)));
      for (int64_t seed = 1; seed <= task.seeds(seeds_); ++seed)
        for (const int64_t workers : workers_[i])
          for (const IstMethod& method : ist_methods()) add(timed_run(task, run_of(task, &method, workers, seed)));
      for (int64_t seed = 1; shows_one_worker(task) && seed <= task.seeds(seeds_); ++seed)
        add(make_run(task, run_of(task, nullptr, 1, seed)));
    }
    return all;
  }

  Report report(const Results& results) const override {
    std::string text = ist_setting(tasks_) + ist_rounds(tasks_);
    text += fmt::format(
        "\nThe columns tell when training first has the accuracy: a point on the line between two evaluations. Numbers "
        "are means over the seeds that have finished; \"–\" says that one of them never has the accuracy. *Seconds "
        "here* are those of training, without evaluations, on the machines that trained. {} The columns \"÷ IST's\" "
        "have the number "
        "before, divided by IST's. The paper's machines and networks are different, so compare these ratios, not the "
        "seconds.\n",
        kOwnMachines);
    std::vector<Chart> charts;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      const int64_t seeds = tasks_[i].seeds(seeds_);
      text += fmt::format("\n## {}\n\nSeeds: {}.\n\n{}", tasks_[i].title,
                          seeds == 1 ? "1" : fmt::format("1 to {}", seeds), table(tasks_[i], workers_[i], results));
      charts.push_back(chart(tasks_[i], workers_[i], results));
    }
    return {.text = text,
            .figures = {
                {"seconds.svg", draw_charts("IST, Table 1: seconds to a test accuracy", ist_links(tasks_), charts)}}};
  }

 private:
  static bool shows_one_worker(const IstTask& task) { return !task.waits; }

  std::vector<double> levels(const IstTask& task) const {
    if (task.shortened && task.hidden == 0 && (brief_ || task.paper != kResNet18))
      return {std::begin(kShortLevels), std::end(kShortLevels)};
    std::vector<double> found;
    for (const PaperRow& row : kPaperRows)
      if (row.network == task.paper) found.push_back(row.accuracy);
    return found;
  }

  /// The seconds in one of the paper's rows; nullopt if the paper has none.
  static std::optional<double> paper_seconds(const IstTask& task, double accuracy, size_t method, int64_t workers) {
    const auto column = std::ranges::find(kColumnWorkers, workers);
    const auto row = std::ranges::find_if(
        kPaperRows, [&](const PaperRow& r) { return r.network == task.paper && r.accuracy == accuracy; });
    if (column == std::end(kColumnWorkers) || row == std::end(kPaperRows) || !row->seconds) return std::nullopt;
    return (*row->seconds)[method][static_cast<size_t>(column - std::begin(kColumnWorkers))];
  }

  /// nullopt if no seed has finished, or if one of them never had the accuracy.
  std::optional<Reached> reached(const IstTask& task, double accuracy, const IstMethod* method, int64_t workers,
                                 const Results& results) const {
    std::vector<double> steps, seconds, own;
    for (int64_t seed = 1; seed <= task.seeds(seeds_); ++seed) {
      const IstRun run = run_of(task, method, workers, seed);
      const RunResult* result = find_result(results, task, run);
      if (!result) continue;
      const auto found = crossing(*result, accuracy);
      if (!found) return std::nullopt;
      steps.push_back(found->steps);
      seconds.push_back(found->seconds);
      const auto step = task.hidden > 0 ? own_machine_seconds(results, task, run) : std::nullopt;
      if (step) own.push_back(*step * found->steps);
    }
    if (steps.empty()) return std::nullopt;
    return Reached{summarize(steps).mean, summarize(seconds).mean,
                   own.empty() ? std::nullopt : std::optional(summarize(own).mean)};
  }

  std::string table(const IstTask& task, const std::vector<int64_t>& all_workers, const Results& results) const {
    std::vector<std::vector<std::string>> rows = {{"accuracy", "workers", "method", "steps", "seconds here", "÷ IST's",
                                                   "own machines, s", "÷ IST's", "the paper's seconds", "÷ its IST's"}};
    const auto ratio = [](std::optional<double> slow, std::optional<double> fast) {
      return slow && fast ? std::optional(*slow / *fast) : std::nullopt;
    };
    const auto get = [](const std::optional<Reached>& from, auto member) -> std::optional<double> {
      return from ? std::optional<double>((*from).*member) : std::nullopt;
    };
    const auto own = [](const std::optional<Reached>& from) { return from ? from->own_seconds : std::nullopt; };
    for (const double accuracy : levels(task)) {
      if (shows_one_worker(task)) {
        const auto alone = reached(task, accuracy, nullptr, 1, results);
        rows.push_back({fmt::format("{:.2f}", accuracy), "1", "SGD", cell(get(alone, &Reached::steps), 0),
                        cell(get(alone, &Reached::seconds), 1), "–", cell(own(alone), 1), "–", "–", "–"});
      }
      for (const int64_t workers : all_workers) {
        const auto ist = reached(task, accuracy, &ist_methods()[kIst], workers, results);
        for (size_t method = 0; method <= kIst; ++method) {
          const auto mine = reached(task, accuracy, &ist_methods()[method], workers, results);
          const auto seconds = get(mine, &Reached::seconds);
          const auto paper = paper_seconds(task, accuracy, method, workers);
          rows.push_back({fmt::format("{:.2f}", accuracy), std::to_string(workers), ist_methods()[method].title,
                          cell(get(mine, &Reached::steps), 0), cell(seconds, 1),
                          cell(ratio(seconds, get(ist, &Reached::seconds)), 2), cell(own(mine), 1),
                          cell(ratio(own(mine), own(ist)), 2), cell(paper, 0),
                          cell(ratio(paper, paper_seconds(task, accuracy, kIst, workers)), 2)});
        }
      }
    }
    return markdown_table(rows);
  }

  Chart chart(const IstTask& task, const std::vector<int64_t>& workers, const Results& results) const {
    const double accuracy = levels(task).back();
    Chart chart = {.title = fmt::format("{}, to {:.0f} %", task.title, 100 * accuracy),
                   .x_label = task.hidden > 0 ? "workers on own machines" : "workers here",
                   .series = {},
                   .y_suffix = " s"};
    double most = 1;
    for (size_t i = 0; i < workers.size(); ++i)
      chart.x_ticks.emplace_back(static_cast<double>(i), std::to_string(workers[i]));
    for (size_t method = 0; method < ist_methods().size(); ++method) {
      const IstMethod& shown = ist_methods()[method];
      Series line = {.label = shown.title, .color = shown.color, .points = {}, .markers = true};
      for (size_t i = 0; i < workers.size(); ++i) {
        const auto found = reached(task, accuracy, &shown, workers[i], results);
        if (!found || (task.hidden > 0 && !found->own_seconds)) continue;
        const double seconds = found->own_seconds.value_or(found->seconds);
        line.points.emplace_back(static_cast<double>(i), seconds);
        most = std::max(most, seconds);
      }
      chart.series.push_back(line);
    }
    chart.x_range = {-0.2, static_cast<double>(workers.size()) - 0.8};
    chart.y_range = {0, 1.1 * most};
    return chart;
  }

  std::vector<IstTask> tasks_;
  int64_t seeds_;
  bool brief_;  ///< short runs, in which convolutional networks do not reach the paper's accuracies
  std::vector<std::vector<int64_t>> workers_;  ///< for each task
};

}  // namespace

ExperimentEntry ist_table1() {
  return {.name = "ist-table1",
          .title = "IST, Table 1: seconds to levels of accuracy",
          .data = kIstData,
          .time =
              "tones 40 minutes on 2 cores, spoken words with 3 seeds 3 hours, ResNet-18 of half width days; with "
              "--quick 3 and 7 minutes",
          .device = kAnyDevice,
          .make = make_experiment<IstTable1>};
}

}  // namespace tern::reproduce
