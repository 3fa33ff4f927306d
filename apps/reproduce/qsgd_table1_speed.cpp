#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "tern/apps/advise/forecast.h"
#include "tern/apps/advise/workbench.h"
#include "tern/apps/reproduce/engine/data_choice.h"
#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/dist/comm/link.h"
#include "tern/networks/networks.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

/// A network whose speed-up on 8 GPUs the paper projects.
struct ProjectedSpeed {
  const char *preset, *title, *color;
  int64_t images;    ///< of each machine in a step
  double published;  ///< speed-up
};
constexpr ProjectedSpeed kProjectedSpeeds[] = {{"bn-inception", "BN-Inception", kBlue, 16, 1.16},
                                               {"vgg19", "VGG19", kOrange, 4, 2.25}};
constexpr const char* kSpeedRates[] = {"1gbit", "10gbit"};
constexpr int kSpeedMachines[] = {2, 4, 8};
constexpr const char *kSpeedLatency = "0.1ms", *kFourBits = "qsgd:bits=4,bucket=512,norm=max";

/// Measures the parts of a step and forecasts steps of all numbers of machines: seconds with floats and with 4 bits.
Numbers forecast_steps(const ProjectedSpeed& row, const char* rate, double budget) {
  advise::Workbench workbench(networks::find_variant(row.preset),
                              {.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency())),
                               .images = row.images,
                               .seconds = budget});
  advise::Forecaster forecaster(workbench, parse_link(fmt::format("rate={},latency={}", rate, kSpeedLatency)), 1);
  const advise::Measured& measured = forecaster.measured();
  Numbers numbers = {{"compute", {measured.compute}}, {"copied_byte", {measured.here.byte}}};
  for (const int machines : kSpeedMachines) {
    const auto floats = forecaster.forecast({.exchange = "ring"}, machines),
               codes = forecaster.forecast({.codec = kFourBits, .exchange = "reduce-scatter"}, machines);
    numbers["machines"].push_back(machines);
    numbers["float_seconds"].push_back(floats.seconds());
    numbers["code_seconds"].push_back(codes.seconds());
    numbers["coding"].push_back(codes.exchange.encode + codes.exchange.decode);
    numbers["float_bytes"].push_back(floats.sent);
    numbers["code_bytes"].push_back(codes.sent);
  }
  return numbers;
}

/// The speeds of BN-Inception and VGG19 in QSGD's Table 1 (Alistarh et al., 2017, section 5).
class QsgdTable1Speed final : public Experiment {
 public:
  explicit QsgdTable1Speed(const ExperimentOptions& options) : budget_(options.quick ? 0.3 : 2) {
    check_trains_nothing("qsgd-table1-speed", options);
  }

  std::vector<Run> runs() const override {
    std::vector<Run> all;
    for (const ProjectedSpeed& row : kProjectedSpeeds)
      for (const char* rate : kSpeedRates)
        all.push_back({.name = run_name(row, rate),
                       .flags = {fmt::format("network={}", row.preset), fmt::format("images={}", row.images),
                                 fmt::format("rate={}", rate), fmt::format("seconds={}", budget_)},
                       .places = {},
                       .steps = 1,
                       .columns = {{"network", row.preset}, {"rate", rate}},
                       .measures_time = true,
                       .study = [&row, rate, budget = budget_](const StudyProgress& progress) {
                         Numbers numbers = forecast_steps(row, rate, budget);
                         progress(1);
                         return numbers;
                       }});
    return all;
  }

  Report report(const Results& results) const override {
    std::string text = fmt::format(
        "The paper projects these speed-ups; it did not train the two networks to the end. This table is a forecast, "
        "too, from measured parts, as `advise` makes it. Measured here are the computation of a step with {} threads, "
        "and the time of coding. The times of messages are computed for machines of this kind behind links of the "
        "given rate and {}. The paper's machines have GPUs, whose computation takes less time, and faster links. So "
        "compare which network gains more.\n\nFloats go around a ring. Codes of 4 bits ({}) are exchanged by "
        "reduce-scatter, which codes the mean again: that is CNTK's way.\n\n",
        std::thread::hardware_concurrency(), kSpeedLatency, kFourBits);
    std::vector<std::vector<std::string>> rows = {
        {"network", "images a step, each", "rate", "machines", "computation, s", "MB sent, float", "MB sent, 4 bits",
         "coding, s", "step, float, s", "step, 4 bits, s", "speed-up", "the paper's, 8 GPUs"}};
    for (const ProjectedSpeed& row : kProjectedSpeeds)
      for (const char* rate : kSpeedRates)
        if (const auto found = results.find(run_name(row, rate)); found != results.end())
          append_rows(row, rate, found->second.numbers, rows);
    text += markdown_table(rows);
    for (const ProjectedSpeed& row : kProjectedSpeeds)
      for (const char* rate : kSpeedRates)
        if (const auto found = results.find(run_name(row, rate)); found != results.end())
          text += slower_copying(row, rate, found->second.numbers);
    return {.text = text, .figures = {{"speedup.svg", figure(results)}}};
  }

 private:
  static std::string run_name(const ProjectedSpeed& row, const char* rate) {
    return fmt::format("{}-{}", row.preset, rate);
  }

  /// No link is faster than the ranks of one machine are with each other: see advise::Forecaster. Empty for a result of
  /// an older version, which does not tell the rate.
  static std::string slower_copying(const ProjectedSpeed& row, const char* rate, const Numbers& numbers) {
    const auto byte = numbers.find("copied_byte");
    const double link = parse_link(fmt::format("rate={}", rate)).bytes_per_second;
    if (byte == numbers.end() || byte->second[0] * link <= 1) return "";
    return fmt::format(
        "\n{} at {}: the machine copied only {:.1f} Gbit/s from rank to rank, so the times use that rate.\n", row.title,
        rate, 8e-9 / byte->second[0]);
  }

  static void append_rows(const ProjectedSpeed& row, const char* rate, const Numbers& numbers,
                          std::vector<std::vector<std::string>>& rows) {
    for (size_t i = 0; i < std::size(kSpeedMachines); ++i) {
      const auto at = [&](const char* name) { return numbers.at(name)[i]; };
      rows.push_back({row.title, std::to_string(row.images), rate, std::to_string(kSpeedMachines[i]),
                      fmt::format("{:.2f}", numbers.at("compute")[0]), fmt::format("{:.1f}", at("float_bytes") / 1e6),
                      fmt::format("{:.1f}", at("code_bytes") / 1e6), fmt::format("{:.3f}", at("coding")),
                      fmt::format("{:.2f}", at("float_seconds")), fmt::format("{:.2f}", at("code_seconds")),
                      fmt::format("{:.2f}", at("float_seconds") / at("code_seconds")),
                      kSpeedMachines[i] == 8 ? fmt::format("{:.2f}", row.published) : "–"});
    }
  }

  static std::string figure(const Results& results) {
    std::vector<Chart> charts;
    for (const char* rate : kSpeedRates) {
      Chart chart = {.title = fmt::format("speed-up, links of {}", rate), .x_label = "machines", .series = {}};
      double most = 1.5;
      for (const ProjectedSpeed& row : kProjectedSpeeds) {
        const auto found = results.find(run_name(row, rate));
        if (found == results.end()) continue;
        const Numbers& numbers = found->second.numbers;
        Series line = {.label = row.title, .color = row.color, .points = {}, .markers = true};
        for (size_t i = 0; i < std::size(kSpeedMachines); ++i) {
          const double times = numbers.at("float_seconds")[i] / numbers.at("code_seconds")[i];
          line.points.emplace_back(static_cast<double>(i), times);
          most = std::max(most, times);
        }
        chart.series.push_back(line);
      }
      for (size_t i = 0; i < std::size(kSpeedMachines); ++i)
        chart.x_ticks.emplace_back(static_cast<double>(i), std::to_string(kSpeedMachines[i]));
      chart.x_range = {-0.2, static_cast<double>(std::size(kSpeedMachines)) - 0.8};
      chart.y_range = {0, 1.1 * most};
      charts.push_back(chart);
    }
    return draw_charts("QSGD, Table 1: speed-up by 4-bit gradients", "forecast from measured parts", charts);
  }

  double budget_;  ///< seconds of a measurement
};

}  // namespace

ExperimentEntry qsgd_table1_speed() {
  return {.name = "qsgd-table1-speed",
          .title = "QSGD, Table 1: speed of BN-Inception and VGG19",
          .data = "none",
          .time = "minutes on 2 cores",
          .make = make_experiment<QsgdTable1Speed>};
}

}  // namespace tern::reproduce
