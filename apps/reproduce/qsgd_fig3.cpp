#include <fmt/format.h>

#include <algorithm>

#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/lstm_setting.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

/// QSGD's Figure 3b: the error of the LSTM over time, with floats and 4 bits, behind a link.
class QsgdFigure3 final : public Experiment {
 public:
  static constexpr const char* kLink = "rate=1gbit,latency=0.1ms";

  explicit QsgdFigure3(const ExperimentOptions& options)
      : setting_("qsgd-fig3", options, 1),
        plan_(setting_.plan("QSGD, Figure 3b: LSTM on AN4 over time", "", {"--link", kLink})),
        training_(plan_) {
    refuse_seeds("qsgd-fig3", options);
  }

  std::vector<Run> runs() const override {
    std::vector<Run> all = training_.runs();
    for (Run& run : all) run.measures_time = true;
    return all;
  }

  Report report(const Results& results) const override {
    const std::string text = fmt::format(
        "Figure 3b. {} The workers are threads of one machine behind `--link {}`, and share its cores. The paper's "
        "error is that of frames; this is that of phones.\n\nFigures 3a (AlexNet) and 3c (ResNet-50) need ImageNet: "
        "`reproduce qsgd-table1-imagenet` draws them over steps.\n\n{}",
        setting_.sentences(), kLink, table(results));
    return {.text = text, .figures = {{"error.svg", figure(results)}}};
  }

 private:
  static constexpr double kLevels[] = {0.6, 0.4, 0.3, 0.2};

  /// The result of the first seed with the codec of this number; null if it has not finished.
  const RunResult* result_of(size_t codec, const Results& results) const {
    const auto found = results.find(training_.runs()[codec].name);
    return found == results.end() ? nullptr : &found->second;
  }

  /// Where the error first falls to a level.
  static std::optional<Crossing> fall_to(const RunResult& result, double level) {
    RunResult rising;
    rising.curve = result.curve;
    for (CurvePoint& point : rising.curve) point.score = -point.score;
    return crossing(rising, -level);
  }

  std::string table(const Results& results) const {
    std::vector<std::vector<std::string>> rows = {{"gradients"}};
    for (const double level : kLevels) rows.front().push_back(fmt::format("minutes to {:.0f} %", 100 * level));
    rows.front().insert(rows.front().end(), {"error at the end, %", "minutes"});
    for (size_t i = 0; i < plan_.codecs.size(); ++i) {
      rows.push_back({plan_.codecs[i].label});
      rows.back().resize(rows.front().size(), "–");
      const RunResult* result = result_of(i, results);
      if (!result) continue;
      for (size_t k = 0; k < std::size(kLevels); ++k)
        if (const auto reached = fall_to(*result, kLevels[k]))
          rows.back()[k + 1] = fmt::format("{:.1f}", reached->seconds / 60);
      rows.back()[rows.back().size() - 2] = fmt::format("{:.2f}", 100 * result->score);
      rows.back().back() = fmt::format("{:.1f}", result->seconds / 60);
    }
    return markdown_table(rows);
  }

  std::string figure(const Results& results) const {
    Chart chart = {.title = "Phone error rate of the test set", .x_label = "minutes", .series = {}, .y_suffix = " %"};
    double most = 1e-3, highest = 1;
    for (size_t i = 0; i < plan_.codecs.size(); ++i) {
      const RunResult* result = result_of(i, results);
      if (!result) continue;
      Series series = {.label = plan_.codecs[i].label, .color = kPalette[i], .points = {}, .markers = true};
      for (const CurvePoint& point : result->curve) {
        series.points.emplace_back(point.seconds / 60, 100 * point.score);
        most = std::max(most, point.seconds / 60);
        highest = std::max(highest, 100 * point.score);
      }
      chart.series.push_back(series);
    }
    chart.x_range = {0, most};
    chart.y_range = {0, 1.05 * highest};
    return draw_charts(plan_.title, fmt::format("{} workers · {} · seed 1", setting_.workers, kLink), {&chart, 1});
  }

  LstmSetting setting_;
  CodecComparisonPlan plan_;
  CodecComparison training_;
};

}  // namespace

ExperimentEntry qsgd_fig3() {
  return {.name = "qsgd-fig3",
          .title = "QSGD, Figure 3: AlexNet, LSTM and ResNet-50 over time; here b, the LSTM",
          .data = "AN4 as cepstra: --data-dir DIR; a and c are in qsgd-table1-imagenet",
          .time = "6 and 11 minutes a run on 2 cores, two runs; with --quick a smaller network",
          .device = kAnyDevice,
          .make = make_experiment<QsgdFigure3>};
}

}  // namespace tern::reproduce
