#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/ist_training.h"
#include "tern/apps/reproduce/sample.h"
#include "tern/core/error.h"
#include "tern/data/extreme.h"
#include "tern/networks/extreme.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

/// A row of the paper's table: precision at 1, 3 and 5. 8 GPUs.
struct PaperPrecision {
  TrainingMethod method;
  int64_t dimension;
  std::array<double, 3> precision;
};
constexpr PaperPrecision kPaperPrecisions[] = {{TrainingMethod::data_parallel, 512, {0.3861, 0.3454, 0.3164}},
                                               {TrainingMethod::ist, 512, {0.3962, 0.3604, 0.3313}},
                                               {TrainingMethod::ist, 1024, {0.4089, 0.3685, 0.3392}},
                                               {TrainingMethod::ist, 1536, {0.4320, 0.3907, 0.3614}},
                                               {TrainingMethod::ist, 2048, {0.4365, 0.3936, 0.3637}},
                                               {TrainingMethod::ist, 2560, {0.4384, 0.3944, 0.3658}}};
constexpr std::array<const char*, 3> kScoreKeys = {"precision_at_1", "precision_at_3", "precision_at_5"};

constexpr int64_t kUsualWorkers = 4, kBatchOfRank = 64, kLocalSteps = 10, kEpochs = 20;
constexpr double kRate = 0.3, kRateWidth = 512;
/// Drawn data: Amazon-670k's inputs and labels, divided by ten, and by a hundred with --quick.
constexpr int64_t kInputs = 13'591, kLabels = 67'009, kSamples = 20'000, kQuick = 10;

/// IST's Table 2 (Yuan et al., section 4): precision on Amazon-670k by the width of the hidden layer.
class IstTable2 final : public Experiment {
 public:
  explicit IstTable2(const ExperimentOptions& options)
      : quick_(options.quick), seeds_(options.seeds.value_or(1)), iterations_(options.iterations) {
    const std::string data =
        options.data.empty() ? options.data_dir.empty() ? "extreme" : "extreme-file" : options.data;
    check_input(data == "extreme" || data == "extreme-file", "--data: found '", data,
                "', expected extreme|extreme-file");
    check_input(data != "extreme-file" || !options.data_dir.empty(),
                "ist-table2 needs --data-dir DIR with the files of extreme-file, or, to try it, --data extreme");
    check_input(data != "extreme" || options.data_dir.empty(),
                "--data-dir would change nothing: --data extreme reads no files");
    const auto workers = ist_workers(options, {kUsualWorkers});
    check_input(workers.size() == 1, "--workers: found ", workers.size(), " numbers, expected 1");
    workers_ = workers.front();
    flags_ = {"--data", data};
    if (data == "extreme-file") {
      places_ = {"--data-dir", options.data_dir};
      samples_ = ExtremeFile(*open_source(find_extreme_file(options.data_dir, Split::train))).size();
    } else {
      const int64_t share = quick_ ? kQuick : 1;
      samples_ = kSamples / share;
      for (const auto& [flag, count] :
           {std::pair{"--inputs", kInputs / share}, {"--labels", kLabels / share}, {"--samples", samples_}})
        flags_.insert(flags_.end(), {flag, std::to_string(count)});
    }
  }

  std::vector<Run> runs() const override {
    std::vector<Run> all;
    for (int64_t seed = 1; seed <= seeds_; ++seed)
      for (const PaperPrecision& row : kPaperPrecisions) all.push_back(run_of(row, seed));
    return all;
  }

  Report report(const Results& results) const override {
    std::vector<std::vector<std::string>> rows = {
        {"method", "dimension", "P@1, %", "P@3, %", "P@5, %", "the paper's P@1", "P@3", "P@5"}};
    for (const PaperPrecision& row : kPaperPrecisions) {
      std::vector<std::string> cells = {name_of(row.method), std::to_string(width(row))};
      for (size_t k = 0; k < kScoreKeys.size(); ++k) cells.push_back(mean_cell(precision(row, k, results)));
      for (const double paper : row.precision) cells.push_back(fmt::format("{:.2f}", 100 * paper));
      rows.push_back(cells);
    }
    const Chart charts[] = {chart(results)};
    return {.text = setting() + "\n" + markdown_table(rows),
            .figures = {{"precision.svg", draw_charts("IST, Table 2: precision by dimension",
                                                      "the whole model on test samples", charts)}}};
  }

 private:
  static std::string name_of(TrainingMethod method) { return method == TrainingMethod::ist ? "IST" : "data parallel"; }
  int64_t width(const PaperPrecision& row) const { return quick_ ? row.dimension / kQuick : row.dimension; }
  int64_t steps() const {
    return iterations_.value_or(kEpochs * std::max<int64_t>(1, samples_ / (kBatchOfRank * workers_)));
  }

  /// A step changes the logits in proportion to the number of neurons, and in a subnet to the number of workers too.
  double rate(const PaperPrecision& row) const {
    const double own = kRate * kRateWidth / static_cast<double>(width(row));
    return row.method == TrainingMethod::ist ? own / static_cast<double>(workers_) : own;
  }

  Run run_of(const PaperPrecision& row, int64_t seed) const {
    const std::string method = to_string(row.method), hidden = std::to_string(width(row));
    Run run = {.name = fmt::format("{}-{}-{}-workers-seed-{}", method, hidden, workers_, seed),
               .program = networks::extreme().program(),
               .flags = flags_,
               .places = places_,
               .steps = steps(),
               .columns = {{"method", method},
                           {"dimension", hidden},
                           {"workers", std::to_string(workers_)},
                           {"seed", std::to_string(seed)}}};
    const auto add = [&](std::initializer_list<std::string> words) {
      run.flags.insert(run.flags.end(), words.begin(), words.end());
    };
    add({"--hidden", hidden, "--local-batch-size", std::to_string(kBatchOfRank), "--iterations",
         std::to_string(steps())});
    add({"--optimizer", "sgd", "--lr", fmt::format("{:.6g}", rate(row))});
    add({"--seed", std::to_string(seed), "--workers", std::to_string(workers_), "--method", method});
    if (row.method == TrainingMethod::ist) add({"--local-steps", std::to_string(kLocalSteps)});
    return run;
  }

  Sample precision(const PaperPrecision& row, size_t k, const Results& results) const {
    std::vector<double> found;
    for (int64_t seed = 1; seed <= seeds_; ++seed)
      if (const auto result = results.find(run_of(row, seed).name); result != results.end())
        found.push_back(100 * result->second.scores.at(kScoreKeys[k]));
    return summarize(found);
  }

  std::string setting() const {
    return fmt::format(
        "A network with one hidden layer on {}; {} training samples. {} workers with a batch of {} each, plain SGD, "
        "{} steps; IST with {} local steps. The learning rate is {} for {} dimensions and falls with them, and for IST "
        "with the number of workers too. Test samples are evaluated with the whole model. {}The paper's numbers are of "
        "Amazon-670k on 8 GPUs. There, data parallel fails from dimension "
        "1024 on, because the model does not fit.\n",
        places_.empty() ? "drawn samples" : "the files", samples_, workers_, kBatchOfRank, steps(), kLocalSteps, kRate,
        static_cast<int64_t>(kRateWidth),
        places_.empty() ? "**Not the paper's data**: drawn samples of the same form, with fewer inputs and labels. "
                        : "");
  }

  Chart chart(const Results& results) const {
    constexpr std::array<std::string_view, 3> kColors = {kBlue, kOrange, kGreen};
    Chart chart = {.title = "IST (lines) and data parallel (dots)",
                   .x_label = "embedding dimension",
                   .series = {},
                   .y_suffix = " %"};
    for (size_t k = 0; k < kScoreKeys.size(); ++k) {
      Series line = {.label = fmt::format("P@{}", 2 * k + 1), .color = std::string(kColors[k]), .points = {}};
      Series dots = {.label = "", .color = std::string(kColors[k]), .points = {}, .width = 0, .markers = true};
      for (const PaperPrecision& row : kPaperPrecisions) {
        const Sample found = precision(row, k, results);
        if (found.count == 0) continue;
        (row.method == TrainingMethod::ist ? line : dots)
            .points.emplace_back(static_cast<double>(width(row)), found.mean);
      }
      chart.series.push_back(line);
      chart.series.push_back(dots);
    }
    if (const auto percent = extent(chart.series)) chart.y_range = {0, 1.1 * percent->second + 0.1};
    return chart;
  }

  bool quick_;
  int64_t seeds_, workers_ = 0, samples_ = 0;
  std::optional<int64_t> iterations_;
  std::vector<std::string> flags_, places_;
};

}  // namespace

ExperimentEntry ist_table2() {
  return {.name = "ist-table2",
          .title = "IST, Table 2: precision on Amazon-670k by embedding dimension",
          .data =
              "extreme, drawn, a tenth of Amazon-670k; or --data-dir DIR with Amazon-670k's train.txt and test.txt, "
              "the paper's",
          .time = "drawn 1.5 hours on 2 cores, with 13 GB of memory; with --quick 2 minutes",
          .device = kAnyDevice,
          .make = make_experiment<IstTable2>};
}

}  // namespace tern::reproduce
