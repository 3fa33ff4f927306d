#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/experiment.h"
#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/core/error.h"
#include "tern/networks/networks.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

/// QSGD's Figure 2 (Alistarh et al., 2017, section 5): computation and communication time of an epoch by number of
/// workers, for floats and 4 bits, measured on a simulated link.
class QsgdFigure2 final : public Experiment {
 public:
  struct Network {
    networks::Variant variant;
    const char* title;              ///< title of its panel
    int64_t epoch;                  ///< number of images
    int64_t steps, steps_if_quick;  ///< steps of a run

    /// Part of the names of runs.
    const std::string& name() const { return variant.preset.name; }
    /// Images of all workers per step.
    int64_t batch() const { return variant.network.recipe.defaults.batch_size; }
  };
  struct Method {
    const char* name;   ///< part of the names of runs
    const char* label;  ///< in tables and figures
    const char *codec, *exchange, *color;
  };

  static constexpr const char* kLink = "rate=1gbit,latency=0.1ms";

  /// Throws InputError with the option if one is invalid.
  explicit QsgdFigure2(const ExperimentOptions& options);

  static std::span<const Network> networks();
  static std::span<const Method> methods();
  std::vector<Run> runs() const override;
  Report report(const Results& results) const override;

 private:
  /// Times of rank 0 for an epoch, in seconds; nullopt if the run has not finished.
  std::optional<TimeShares> epoch_of(const Network& network, const Method& method, int64_t workers,
                                     const Results& results) const;
  int64_t steps(const Network& network) const;
  std::string run_name(const Network& network, const Method& method, int64_t workers) const;
  std::string table(const Network& network, const Results& results) const;
  std::string figure(const Results& results) const;

  bool quick_;
  std::optional<int64_t> iterations_;
  std::vector<int64_t> workers_;  ///< in increasing order
};

std::span<const QsgdFigure2::Network> QsgdFigure2::networks() {
  static const Network all[] = {{.variant = networks::find_variant("lenet"),
                                 .title = "LeNet, 1.26 million parameters, batch 64",
                                 .epoch = 60'000,
                                 .steps = 200,
                                 .steps_if_quick = 60},
                                {.variant = networks::find_variant("resnet20"),
                                 .title = "ResNet-20, 0.27 million parameters, batch 128",
                                 .epoch = 50'000,
                                 .steps = 60,
                                 .steps_if_quick = 12}};
  return all;
}

std::span<const QsgdFigure2::Method> QsgdFigure2::methods() {
  static const Method all[] = {
      {.name = "32-bit", .label = "32 bit", .codec = "none", .exchange = "ring", .color = kBlue},
      {.name = "4-bit",
       .label = "4 bit",
       .codec = "qsgd:bits=4,bucket=512,norm=max",
       .exchange = "allgather",
       .color = kOrange}};
  return all;
}

QsgdFigure2::QsgdFigure2(const ExperimentOptions& options)
    : quick_(options.quick), iterations_(options.iterations), workers_(options.workers) {
  check_input(options.data.empty() && options.data_dir.empty(),
              "--data would change nothing: qsgd-fig2 draws its data");
  check_input(!options.seeds, "--seeds would change nothing: qsgd-fig2 measures time");
  if (workers_.empty()) workers_ = {2, 4, 8};
  const std::set<int64_t> rising(workers_.begin(), workers_.end());
  workers_.assign(rising.begin(), rising.end());
  for (const int64_t workers : workers_)
    for (const Network& network : networks())
      check_input(workers >= 2 && network.batch() % workers == 0, "--workers: found ", workers,
                  ", expected a number from 2 that shares batches of 64 and 128 equally");
}

int64_t QsgdFigure2::steps(const Network& network) const {
  return iterations_.value_or(quick_ ? network.steps_if_quick : network.steps);
}

std::string QsgdFigure2::run_name(const Network& network, const Method& method, int64_t workers) const {
  return fmt::format("{}-{}-{}-workers-{}-steps", network.name(), method.name, workers, steps(network));
}

std::vector<Run> QsgdFigure2::runs() const {
  std::vector<Run> all;
  for (const Network& network : networks())
    for (const int64_t workers : workers_)
      for (const Method& method : methods()) {
        Run run = {
            .name = run_name(network, method, workers),
            .program = network.variant.network.program(),
            .flags = network.variant.preset.flags(),
            .places = {},
            .steps = steps(network),
            .columns = {{"network", network.name()}, {"gradients", method.name}, {"workers", std::to_string(workers)}},
            .measures_time = true};
        const auto add = [&run](std::initializer_list<std::string> words) { run.flags.insert(run.flags.end(), words); };
        add({"--data", network.variant.settings().data});
        add({"--batch-size", std::to_string(network.batch()), "--iterations", std::to_string(steps(network))});
        add({"--workers", std::to_string(workers), "--transport", "inproc", "--link", kLink});
        add({"--codec", method.codec, "--exchange", method.exchange, "--check-every", "0"});
        if (&method != &methods().front()) add({"--min-compress", "10000"});
        all.push_back(run);
      }
  return all;
}

std::optional<TimeShares> QsgdFigure2::epoch_of(const Network& network, const Method& method, int64_t workers,
                                                const Results& results) const {
  const auto found = results.find(run_name(network, method, workers));
  if (found == results.end() || !found->second.time) return std::nullopt;
  const auto steps_of_epoch = static_cast<double>(network.epoch) / static_cast<double>(network.batch());
  const double scale = steps_of_epoch / static_cast<double>(steps(network));
  const TimeShares& time = *found->second.time;
  return TimeShares{.compute = scale * time.compute,
                    .encode = scale * time.encode,
                    .wait = scale * time.wait,
                    .decode = scale * time.decode};
}

/// The paper counts coding as communication.
double communication(const TimeShares& time) { return time.encode + time.wait + time.decode; }

std::string seconds(double value) { return fmt::format("{:.1f}", value); }

std::string QsgdFigure2::table(const Network& network, const Results& results) const {
  std::vector<std::vector<std::string>> rows = {{"workers", "gradients", "computation, s", "coding, s", "waiting, s",
                                                 "communication", "epoch, s", "communication, 32 bit ÷ 4 bit",
                                                 "epoch, 32 bit ÷ 4 bit"}};
  for (const int64_t workers : workers_) {
    const auto whole = epoch_of(network, methods()[0], workers, results);
    for (const Method& method : methods()) {
      const auto time = epoch_of(network, method, workers, results);
      if (!time) continue;
      rows.push_back({std::to_string(workers), method.label, seconds(time->compute),
                      seconds(time->encode + time->decode), seconds(time->wait),
                      fmt::format("{:.0f} %", 100 * communication(*time) / time->total()), seconds(time->total()), "",
                      ""});
      if (&method == &methods()[0] || !whole) continue;
      rows.back()[7] = fmt::format("{:.1f}", communication(*whole) / communication(*time));
      rows.back()[8] = fmt::format("{:.2f}", whole->total() / time->total());
    }
  }
  return markdown_table(rows);
}

/// Draws bars as in the paper: communication below (solid), computation above (faint).
std::string QsgdFigure2::figure(const Results& results) const {
  std::vector<Chart> charts;
  for (const Network& network : networks()) {
    Chart chart = {.title = network.title, .x_label = "workers", .series = {}, .y_suffix = " s"};
    double most = 1;
    for (size_t i = 0; i < workers_.size(); ++i) {
      const auto x = static_cast<double>(i);
      chart.x_ticks.emplace_back(x, std::to_string(workers_[i]));
      double place = x - 0.2;
      for (const Method& method : methods()) {
        const auto time = epoch_of(network, method, workers_[i], results);
        const double below = time ? communication(*time) : 0, above = time ? time->total() : 0;
        chart.series.push_back({.label = i == 0 ? method.label : "",
                                .color = method.color,
                                .points = {{place, 0}, {place, below}},
                                .width = 44});
        chart.series.push_back({.label = "",
                                .color = method.color,
                                .points = {{place, below}, {place, above}},
                                .width = 44,
                                .opacity = 0.35});
        most = std::max(most, above);
        place += 0.4;
      }
    }
    chart.x_range = {-0.6, static_cast<double>(workers_.size()) - 0.4};
    chart.y_range = {0, 1.05 * most};
    charts.push_back(chart);
  }
  return draw_charts("QSGD, Figure 2: an epoch in communication and computation",
                     fmt::format("solid: communication, faint: computation · {} for each worker", kLink), charts);
}

Report QsgdFigure2::report(const Results& results) const {
  std::string text = fmt::format(
      "The times are rank 0's, for an epoch, computed from {} to {} measured steps. Workers are threads of one machine "
      "behind `--link {}`. They share its cores, so the computation does not get shorter with more workers. With a GPU "
      "for each worker it would. Communication includes the time in which workers wait for each other, and the coding "
      "and decoding (section 5). Nothing overlaps; the paper uses double buffering. LeNet stands for the paper's "
      "communication-intensive networks, ResNet-20 for its computation-intensive ones.\n\nThe paper prints these "
      "numbers for its figure. AlexNet on 16 GPUs: with 32 bits, more than 80 % of the time is communication; with 4 "
      "bits, communication is 4 times shorter, and the epoch 2.5 times. LSTM on 2 GPUs: 71 %, 6.8 times and 2.7 "
      "times.\n",
      std::min(steps(networks()[0]), steps(networks()[1])), std::max(steps(networks()[0]), steps(networks()[1])),
      kLink);
  for (const Network& network : networks())
    text += fmt::format("\n## {}\n\n{}", network.title, table(network, results));
  return {.text = text, .figures = {{"epoch.svg", figure(results)}}};
}

}  // namespace

ExperimentEntry qsgd_fig2() {
  return {.name = "qsgd-fig2",
          .title = "QSGD, Figure 2: time of an epoch in communication and computation, by number of workers",
          .data = "none",
          .time = "about 4 minutes on 2 cores; with --quick 1 minute",
          .device = kAnyDevice,
          .make = make_experiment<QsgdFigure2>};
}

}  // namespace tern::reproduce
