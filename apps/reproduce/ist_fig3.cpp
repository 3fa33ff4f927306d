#include <fmt/format.h>

#include <algorithm>

#include "tern/apps/reproduce/codec_comparison.h"
#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/ist_training.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

/// A line of the figure: a method, and its number of local steps J.
struct Way {
  const IstMethod& method;
  int64_t local_steps;
  std::string label, color;
};

std::vector<Way> make_ways() {
  const auto methods = ist_methods();
  return {{methods[0], 1, "DP", kBlue},
          {methods[1], 5, "local 5", kPaleOrange},
          {methods[1], 20, "local 20", kOrange},
          {methods[2], 5, "IST 5", kPaleGreen},
          {methods[2], 20, "IST 20", kGreen}};
}

/// IST's Figure 3 (Yuan et al., section 4, "Scalability"): the speed-up of an epoch with n workers over one worker.
class IstFigure3 final : public Experiment {
 public:
  explicit IstFigure3(const ExperimentOptions& options)
      : tasks_(ist_tasks("ist-fig3", options)),
        workers_(ist_workers(options, options.quick ? std::vector<int64_t>{2, 4} : std::vector<int64_t>{2, 4, 8})),
        steps_(options.iterations.value_or(options.quick ? 20 : 40)) {
    refuse_seeds("ist-fig3", options);
    for (IstTask& task : tasks_) {
      task.waits = true;
      task.evaluates_rounds = false;
      task.iterations = steps_;
    }
  }

  std::vector<Run> runs() const override {
    std::vector<Run> all;
    for (const IstTask& task : tasks_) {
      if (task.hidden > 0) all.push_back(make_rank_run(task, alone()));
      all.push_back(make_run(task, alone()));
      for (const int64_t workers : workers_) {
        if (task.hidden > 0) all.push_back(make_rank_run(task, together(ways_.back(), workers)));
        for (const Way& way : ways_) all.push_back(make_run(task, together(way, workers)));
      }
    }
    for (Run& run : all) run.measures_time = true;
    return all;
  }

  Report report(const Results& results) const override {
    std::string text = fmt::format(
        "The tables have the seconds of an epoch, computed from {} steps of each run, and the speed-up over one "
        "worker's SGD. \"local 5\" and \"IST 5\" exchange every 5 steps.\n\n{}\n*Measured* is the time that the run "
        "took here. *Modelled* is the time if each worker had a machine of its own like this one. It is the sum of two "
        "times. The first is one worker's time for as many steps. With IST a step of a perceptron takes as much less "
        "as a subnet's step does, measured alone on one core; that of a residual network takes an n-th, because a "
        "subnet "
        "has nearly an n-th of the operations. VGG12's convolutions stay whole in each subnet, so there is no number. "
        "The second is the time of rank 0's payload on its cable, at the link's rate. The paper prints no numbers for "
        "its Figure 3.\n",
        steps_, ist_setting(tasks_));
    std::vector<Chart> charts;
    for (const IstTask& task : tasks_) {
      text += fmt::format("\n## {}\n\n{}", task.title, table(task, results));
      charts.push_back(chart(task, results, false));
      charts.push_back(chart(task, results, true));
    }
    return {.text = text,
            .figures = {{"speedup.svg", draw_charts("IST, Figure 3: speed of an epoch, one worker alone = 1",
                                                    ist_links(tasks_), charts)}}};
  }

 private:
  IstRun alone() const { return {.steps = steps_}; }
  IstRun together(const Way& way, int64_t workers) const {
    return {.method = &way.method, .workers = workers, .steps = steps_, .local_steps = way.local_steps};
  }

  /// Training time of an epoch in seconds, without evaluation: CurvePoint::seconds does not include it.
  static double epoch_seconds(const IstTask& task, const RunResult& result, int64_t workers) {
    const CurvePoint& end = end_of(task.name, result);
    return end.seconds / static_cast<double>(end.step) * static_cast<double>(task.epoch_steps(workers));
  }
  /// The time of a step of one worker's subnet, by that of the whole network; nullopt if it is not known.
  std::optional<double> subnet_share(const IstTask& task, const Way& way, int64_t workers,
                                     const Results& results) const {
    if (way.method.method != TrainingMethod::ist) return 1.0;
    if (task.scope == SubnetScope::filters) return 1.0 / static_cast<double>(workers);
    if (task.hidden == 0) return std::nullopt;
    const auto whole = results.find(make_rank_run(task, alone()).name);
    const auto subnet = results.find(make_rank_run(task, together(way, workers)).name);
    if (whole == results.end() || subnet == results.end()) return std::nullopt;
    return subnet->second.step_seconds / whole->second.step_seconds;
  }
  std::optional<double> modelled_seconds(const IstTask& task, const Way& way, int64_t workers,
                                         const Results& results) const {
    const RunResult *one = find_result(results, task, alone()),
                    *result = find_result(results, task, together(way, workers));
    const auto share = subnet_share(task, way, workers, results);
    if (!one || !result || !share) return std::nullopt;
    return epoch_seconds(task, *one, 1) / static_cast<double>(workers) * *share +
           link_seconds(task, *result, together(way, workers)) * static_cast<double>(task.epoch_steps(workers));
  }

  std::string table(const IstTask& task, const Results& results) const {
    std::vector<std::vector<std::string>> rows = {{"workers", "method", "MB a step, rank 0", "waiting, %", "epoch, s",
                                                   "speed-up", "modelled epoch, s", "modelled speed-up"}};
    const RunResult* one = find_result(results, task, alone());
    if (!one) return markdown_table(rows);
    const double whole = epoch_seconds(task, *one, 1);
    rows.push_back({"1", "SGD", "–", "–", fmt::format("{:.1f}", whole), "1", fmt::format("{:.1f}", whole), "1"});
    for (const int64_t workers : workers_)
      for (const Way& way : ways_) {
        const RunResult* result = find_result(results, task, together(way, workers));
        if (!result) continue;
        const double measured = epoch_seconds(task, *result, workers);
        const auto modelled = modelled_seconds(task, way, workers, results);
        const TimeShares time = result->time.value_or(TimeShares());
        rows.push_back({std::to_string(workers), way.label,
                        fmt::format("{:.2f}", static_cast<double>(result->bytes_sent_payload.value_or(0)) /
                                                  static_cast<double>(steps_) / 1e6),
                        fmt::format("{:.0f}", 100 * time.wait / std::max(time.total(), 1e-9)),
                        fmt::format("{:.1f}", measured), fmt::format("{:.2f}", whole / measured), cell(modelled, 1),
                        modelled ? fmt::format("{:.2f}", whole / *modelled) : "–"});
      }
    return markdown_table(rows);
  }

  Chart chart(const IstTask& task, const Results& results, bool modelled) const {
    const std::string network = task.title.substr(0, task.title.find(" on "));  // charts are narrow
    Chart chart = {.title = network + (modelled ? ": modelled" : ": measured"), .x_label = "workers", .series = {}};
    chart.x_ticks.emplace_back(0, "1");
    for (size_t i = 0; i < workers_.size(); ++i)
      chart.x_ticks.emplace_back(static_cast<double>(i + 1), std::to_string(workers_[i]));
    const RunResult* one = find_result(results, task, alone());
    double most = 1;
    for (const Way& way : ways_) {
      Series line = {.label = way.label, .color = way.color, .points = {{0, 1}}, .markers = true};
      for (size_t i = 0; i < workers_.size() && one; ++i) {
        const RunResult* result = find_result(results, task, together(way, workers_[i]));
        if (!result) continue;
        const auto seconds =
            modelled ? modelled_seconds(task, way, workers_[i], results) : epoch_seconds(task, *result, workers_[i]);
        if (!seconds) continue;
        line.points.emplace_back(static_cast<double>(i + 1), epoch_seconds(task, *one, 1) / *seconds);
        most = std::max(most, line.points.back().second);
      }
      chart.series.push_back(line);
    }
    chart.x_range = {-0.1, static_cast<double>(workers_.size()) + 0.1};
    chart.y_range = {0, 1.1 * most};
    return chart;
  }

  std::vector<IstTask> tasks_;
  std::vector<int64_t> workers_;
  int64_t steps_;
  std::vector<Way> ways_ = make_ways();
};

}  // namespace

ExperimentEntry ist_fig3() {
  return {.name = "ist-fig3",
          .title = "IST, Figure 3: speed of an epoch by number of workers, for several numbers of local steps",
          .data = kIstData,
          .time = "tones 6 minutes on 2 cores, spoken words 18; with --quick 25 seconds",
          .device = kAnyDevice,
          .make = make_experiment<IstFigure3>};
}

}  // namespace tern::reproduce
