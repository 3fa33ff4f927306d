#include <fmt/format.h>

#include <algorithm>

#include "tern/apps/reproduce/cifarnet_setting.h"
#include "tern/apps/reproduce/codec_comparison.h"
#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/gradient_census.h"
#include "tern/apps/reproduce/run_settings.h"
#include "tern/apps/reproduce/sample.h"
#include "tern/apps/reproduce/ternary_workers.h"
#include "tern/core/error.h"
#include "tern/networks/cifarnet.h"
#include "tern/trainer/rank/machine.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

constexpr const char *kFloatRun = "float", *kTernaryRun = "ternary";
constexpr const char* kTensor = "fc1.weight";                 ///< CifarNet's first fully connected layer
constexpr double kPaperSparsity = 71.32;                      ///< percent; section 4.2, AlexNet's fc6
constexpr double kPaperFloat = 57.32, kPaperTernary = 57.28;  ///< percent; Table 2, top-1 of the figure's runs
constexpr size_t kPoints = 200;                               ///< points of a smoothed line

/// Trains with ternary gradients. Records the losses, the fraction of zeros in one tensor's codes, and the accuracies
/// of the evaluations after each epoch.
Numbers train(TrainSettings settings, const StudyProgress& progress) {
  prepare_machine(settings);
  TernaryWorkers workers(networks::cifarnet().application(), settings);
  const int64_t total = settings.iterations.value();
  Numbers numbers;
  while (workers.steps() < total) {
    progress(workers.steps());
    numbers["loss"].push_back(workers.step([&](const std::string& name, const GradientStages& stages) {
      if (name == kTensor) numbers["zeros"].push_back(share_of_zeros(stages.ternary));
    }));
    if (workers.steps() % workers.steps_per_epoch() != 0 && workers.steps() != total) continue;
    const Evaluation found = workers.evaluate();
    numbers["evaluated step"].push_back(static_cast<double>(workers.steps()));
    numbers["accuracy"].push_back(found.values().front());
  }
  return numbers;
}

Series percent_line(const char* label, const char* color, const std::vector<std::pair<double, double>>& points) {
  Series line = {.label = label, .color = color, .points = points, .markers = points.size() < 30};
  for (auto& [x, y] : line.points) y *= 100;
  return line;
}

/// TernGrad's Figure 4 (Wen et al., 2017, section 4.2): training with float and ternary gradients, and the sparsity of
/// the ternary gradients, over iterations.
class TernGradFigure4 final : public Experiment {
 public:
  explicit TernGradFigure4(const ExperimentOptions& options)
      : setting_{.data = choose_data("terngrad-fig4", options, {"cifar10", "shapes"}),
                 .iterations = options.iterations.value_or(options.quick ? 1600 : 8000),
                 .course = CifarNetCourse::quick} {
    workers_ = choose_workers(options, workers_, setting_.batch_size, 1);
    check_input(!options.seeds, "--seeds would change nothing: one pair of runs is looked at");
  }

  std::vector<Run> runs() const override {
    Run with_floats = {.name = kFloatRun,
                       .program = networks::cifarnet().program(),
                       .flags = setting_.flags(),
                       .places = setting_.data.places(),
                       .steps = setting_.iterations,
                       .columns = {{"workers", "1"}}};
    Run ternary = with_floats;
    ternary.name = kTernaryRun;
    ternary.program = "";
    const auto more = ternary_flags(workers_);
    ternary.flags.insert(ternary.flags.end(), more.begin(), more.end());
    ternary.columns = {{"workers", std::to_string(workers_)}};
    ternary.study = [settings = settings_of(networks::cifarnet(), ternary)](const StudyProgress& progress) {
      return train(settings, progress);
    };
    return {with_floats, ternary};
  }

  Report report(const Results& results) const override {
    std::string text = setting_.sentence();
    text += fmt::format(
        " Batch {}, {} steps. {} workers make the ternary gradients. One process with the whole batch makes the float "
        "gradients.\n\nThe paper's figure is of AlexNet on ImageNet, with batch 512 and 185,000 steps. So its "
        "accuracies cannot be compared with CifarNet's. Its sparsity is that of AlexNet's first fully connected layer; "
        "the one here is that of CifarNet's.\n\n",
        setting_.batch_size, setting_.iterations, workers_);
    const auto with_floats = results.find(kFloatRun), ternary = results.find(kTernaryRun);
    const bool both = with_floats != results.end() && ternary != results.end();
    if (!both) return {.text = text, .figures = {}};
    const Numbers& numbers = ternary->second.numbers;
    return {.text = text + table(with_floats->second, numbers),
            .figures = {{"training.svg", figure(with_floats->second, numbers)}},
            .tables = {{"ternary.csv", csv(numbers)}}};
  }

 private:
  static std::string table(const RunResult& with_floats, const Numbers& numbers) {
    const double first = 100 * with_floats.score, second = 100 * numbers.at("accuracy").back(),
                 zeros = 100 * summarize(numbers.at("zeros")).mean;
    return markdown_table(
        {{"", "ours", "the paper's", "difference"},
         {"(a) float, test accuracy, %", fmt::format("{:.2f}", first), fmt::format("{:.2f}", kPaperFloat), "–"},
         {"(a) ternary, test accuracy, %", fmt::format("{:.2f}", second), fmt::format("{:.2f}", kPaperTernary), "–"},
         {"(a) float − ternary, points", fmt::format("{:+.2f}", first - second),
          fmt::format("{:+.2f}", kPaperFloat - kPaperTernary),
          fmt::format("{:+.2f}", first - second - (kPaperFloat - kPaperTernary))},
         {"(c) zeros of the ternary gradient, mean over all steps, %", fmt::format("{:.2f}", zeros),
          fmt::format("{:.2f}", kPaperSparsity), fmt::format("{:+.2f}", zeros - kPaperSparsity)}});
  }

  std::string figure(const RunResult& with_floats, const Numbers& numbers) const {
    std::vector<std::pair<double, double>> first, second;
    for (const CurvePoint& point : with_floats.curve) first.emplace_back(point.step, point.score);
    for (size_t i = 0; i < numbers.at("accuracy").size(); ++i)
      second.emplace_back(numbers.at("evaluated step")[i], numbers.at("accuracy")[i]);
    Chart accuracy = {.title = "(a) test accuracy", .x_label = "step", .series = {}};
    accuracy.series = {percent_line("float", kBlue, first), percent_line("ternary", kOrange, second)};
    set_accuracy_axes(accuracy, setting_.iterations);

    Chart loss = {.title = "(b) training loss", .x_label = "step", .series = {}};
    loss.series = {{.label = "float", .color = kBlue, .points = block_means(with_floats.losses, kPoints)},
                   {.label = "ternary", .color = kOrange, .points = block_means(numbers.at("loss"), kPoints)}};

    Chart zeros = {
        .title = "(c) zeros of the ternary gradient of " + std::string(kTensor), .x_label = "step", .series = {}};
    zeros.series = {percent_line("ternary", kOrange, block_means(numbers.at("zeros"), kPoints)),
                    {.label = fmt::format("the paper's mean, AlexNet's fc6: {} %", kPaperSparsity),
                     .color = kGrey,
                     .points = {{1, kPaperSparsity}, {static_cast<double>(setting_.iterations), kPaperSparsity}},
                     .width = 1.5}};
    zeros.series.front().markers = false;
    zeros.y_suffix = " %";
    zeros.y_range = {50, 100};
    const std::vector<Chart> charts = {accuracy, loss, zeros};
    return draw_charts(
        "TernGrad, Figure 4: training over iterations",
        fmt::format("CifarNet · {} · batch {} · {} workers", setting_.data.name, setting_.batch_size, workers_),
        charts);
  }

  static std::string csv(const Numbers& numbers) {
    std::string text = "step,loss,zeros\n";
    for (size_t i = 0; i < numbers.at("loss").size(); ++i)
      text += fmt::format("{},{},{}\n", i + 1, numbers.at("loss")[i], numbers.at("zeros")[i]);
    return text;
  }

  CifarNetSetting setting_;
  int64_t workers_ = 4;
};

}  // namespace

ExperimentEntry terngrad_fig4() {
  return {.name = "terngrad-fig4",
          .title = "TernGrad, Figure 4: accuracy, training loss and sparsity of gradients over iterations",
          .data = "CIFAR-10: ./dev data cifar10",
          .time = "about 25 minutes on 2 cores; with --quick 6 minutes",
          .make = make_experiment<TernGradFigure4>};
}

}  // namespace tern::reproduce
