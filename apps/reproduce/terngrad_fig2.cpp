#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tern/apps/reproduce/cifarnet_setting.h"
#include "tern/apps/reproduce/codec_comparison.h"
#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/gradient_census.h"
#include "tern/apps/reproduce/run_settings.h"
#include "tern/apps/reproduce/sample.h"
#include "tern/apps/reproduce/ternary_workers.h"
#include "tern/core/error.h"
#include "tern/trainer/rank/machine.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

/// Histograms of one quantity at several steps of the training, drawn with an offset; the latest is in front and
/// lowest. The height of a bar is the square root of its share (Tukey's rootogram), so that the tails are visible next
/// to a peak.
struct RidgePanel {
  struct Ridge {
    int64_t step;
    std::vector<double> shares;  ///< for equal bins from `low` to `high`
  };
  std::string title;
  std::vector<Ridge> ridges;  ///< in increasing order of steps
  double low = 0, high = 1;
  std::vector<std::pair<double, std::string>> ticks = {};  ///< labels of the x axis
};

/// Panels side by side; each is scaled to its highest bin.
struct RidgeRow {
  std::string title;
  std::vector<RidgePanel> panels;
};

/// An SVG image of the rows, one below the other, with a heading and a smaller line of text.
std::string draw_ridges(const std::string& heading, const std::string& subheading, const std::vector<RidgeRow>& rows);

constexpr double kPanelWidth = 230, kGap = 26, kLeft = 64, kRight = 24;
constexpr double kTop = 78, kRowTop = 62, kRidge = 86, kSpread = 196, kRowBottom = 44;
constexpr double kRowHeight = kRowTop + kRidge + kSpread + kRowBottom;
constexpr std::array<int, 3> kFirst = {0xbf, 0xdb, 0xfe}, kLast = {0x1e, 0x3a, 0x8a};

constexpr const char* kStyle =
    "text { font: 12px Inter, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif; fill: #475569; }\n"
    ".heading { font-size: 20px; font-weight: 600; fill: #0f172a; }\n"
    ".row { font-size: 15px; font-weight: 600; fill: #0f172a; }\n"
    ".title { font-size: 13px; font-weight: 600; fill: #334155; }\n"
    ".axis { stroke: #94a3b8; }\n"
    ".ridge { stroke: white; stroke-width: 0.8; }\n";

/// Interpolates between the colours of the first and the last ridge.
std::string color(double place) {
  std::array<int, 3> mixed{};
  for (size_t i = 0; i < mixed.size(); ++i)
    mixed[i] = static_cast<int>((1 - place) * kFirst[i] + place * kLast[i] + 0.5);
  return fmt::format("#{:02x}{:02x}{:02x}", mixed[0], mixed[1], mixed[2]);
}

std::string text(double x, double y, const char* anchor, const char* style, const std::string& words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", x, y, anchor, style,
                     words);
}

/// The outline of a histogram above its base line.
std::string outline(const std::vector<double>& shares, double highest, double left, double base) {
  std::string points = fmt::format("{:.1f},{:.1f}", left, base);
  const double width = kPanelWidth / static_cast<double>(shares.size());
  for (size_t i = 0; i < shares.size(); ++i) {
    const double y = base - kRidge * std::sqrt(shares[i] / highest), x = left + width * static_cast<double>(i);
    points += fmt::format(" {:.1f},{:.2f} {:.1f},{:.2f}", x, y, x + width, y);
  }
  return points + fmt::format(" {:.1f},{:.1f}", left + kPanelWidth, base);
}

std::string draw_panel(const RidgePanel& panel, double left, double top, bool with_steps) {
  std::string svg = text(left, top + 42, "start", "title", panel.title);
  double highest = 1e-9;
  for (const auto& ridge : panel.ridges) highest = std::max(highest, std::ranges::max(ridge.shares));
  const double first = top + kRowTop + kRidge;
  const auto last = static_cast<double>(std::max<size_t>(panel.ridges.size(), 2) - 1);
  for (size_t i = 0; i < panel.ridges.size(); ++i) {
    const double place = static_cast<double>(i) / last, base = first + kSpread * place;
    svg += fmt::format("<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"0.88\" class=\"ridge\"/>\n",
                       outline(panel.ridges[i].shares, highest, left, base), color(place));
    if (with_steps && (i % 5 == 0 || i + 1 == panel.ridges.size()))
      svg += text(left - 8, base + 4, "end", "", tick_label(static_cast<double>(panel.ridges[i].step)));
  }
  const double bottom = first + kSpread + 3;
  svg += fmt::format("<line x1=\"{0:.1f}\" y1=\"{2:.1f}\" x2=\"{1:.1f}\" y2=\"{2:.1f}\" class=\"axis\"/>\n", left,
                     left + kPanelWidth, bottom);
  for (const auto& [value, words] : panel.ticks) {
    const double x = left + kPanelWidth * (value - panel.low) / (panel.high - panel.low);
    svg += fmt::format("<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" class=\"axis\"/>\n", x,
                       bottom, bottom + 5);
    svg += text(x, bottom + 19, "middle", "", words);
  }
  return svg;
}

std::string draw_ridges(const std::string& heading, const std::string& subheading, const std::vector<RidgeRow>& rows) {
  size_t columns = 1;
  for (const RidgeRow& row : rows) columns = std::max(columns, row.panels.size());
  const double width = kLeft + static_cast<double>(columns) * (kPanelWidth + kGap) - kGap + kRight;
  const double height = kTop + static_cast<double>(rows.size()) * kRowHeight;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n"
      "<style>\n{2}</style>\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      width, height, kStyle);
  svg += text(kLeft, 34, "start", "heading", heading) + text(kLeft, 54, "start", "", subheading);
  for (size_t row = 0; row < rows.size(); ++row) {
    const double top = kTop + static_cast<double>(row) * kRowHeight;
    svg += text(kLeft, top + 18, "start", "row", rows[row].title);
    for (size_t i = 0; i < rows[row].panels.size(); ++i)
      svg += draw_panel(rows[row].panels[i], kLeft + static_cast<double>(i) * (kPanelWidth + kGap), top, i == 0);
  }
  return svg + "</svg>\n";
}

constexpr int64_t kMostSnapshots = 21;
constexpr double kWidth = 1.5;  ///< histograms range from −kWidth to kWidth, in shared scalers
constexpr const char* kRun = "gradients";
constexpr double kClip = 2.5;  ///< in σ; TernGrad's clipping (section 3.3), also of --codec ternary

/// A row of the figure: a tensor in the place of one of the paper's AlexNet.
struct Row {
  const char *tensor, *title;
};
constexpr Row kRows[] = {{"conv2.weight", "Second convolution (the paper: AlexNet's third)"},
                         {"fc1.weight", "First fully connected layer (the paper: AlexNet's)"}};
/// A column of the figure: a stage of a gradient.
struct Column {
  const char *key, *title;
  Tensor GradientStages::*stage;
  size_t bins;  ///< odd, so that zero is in the middle of a bin
};
constexpr Column kColumns[] = {{"original", "(a) original", &GradientStages::original, 121},
                               {"clipped", "(b) clipped", &GradientStages::clipped, 121},
                               {"ternary", "(c) ternary", &GradientStages::ternary, 41},
                               {"averaged", "(d) averaged", &GradientStages::averaged, 41}};

std::string key_of(const Row& row, const std::string& what) { return std::string(row.tensor) + ' ' + what; }

void append(Numbers& numbers, const std::string& key, const std::vector<double>& more) {
  numbers[key].insert(numbers[key].end(), more.begin(), more.end());
}

void take_down(const Row& row, const GradientStages& stages, Numbers& numbers) {
  for (const Column& column : kColumns)
    append(numbers, key_of(row, column.key), histogram(stages.*column.stage, stages.scaler, kWidth, column.bins));
  const ClippingLoss loss = clipping_loss(stages.original, stages.clipped);
  append(numbers, key_of(row, "length"), {loss.length});
  append(numbers, key_of(row, "degrees"), {loss.degrees});
  append(numbers, key_of(row, "kurtosis"), {kurtosis(stages.original)});
  append(numbers, key_of(row, "zeros"), {share_of_zeros(stages.ternary)});
  append(numbers, key_of(row, "levels"), {static_cast<double>(count_levels(stages.averaged))});
}

/// Trains, and records the gradients of the first step, the last step, and steps at equal distances between them.
Numbers observe(TrainSettings settings, const StudyProgress& progress) {
  prepare_machine(settings);
  TernaryWorkers workers(networks::cifarnet().application(), settings);
  const int64_t last = settings.iterations.value() - 1, snapshots = std::min(kMostSnapshots, last + 1);
  Numbers numbers;
  for (int64_t snapshot = 0; workers.steps() <= last;) {
    progress(workers.steps());
    const bool due = workers.steps() == snapshot * last / (snapshots - 1);
    if (due) append(numbers, "step", {static_cast<double>(workers.steps() + 1)});
    workers.step([&](const std::string& name, const GradientStages& stages) {
      const auto row = std::ranges::find_if(kRows, [&](const Row& known) { return name == known.tensor; });
      if (due && row != std::end(kRows)) take_down(*row, stages, numbers);
    });
    snapshot += due ? 1 : 0;
  }
  return numbers;
}

RidgePanel make_panel(const Column& column, const Row& row, const Numbers& numbers) {
  RidgePanel panel = {
      .title = column.title, .ridges = {}, .low = -kWidth, .high = kWidth, .ticks = {{-1, "−S"}, {0, "0"}, {1, "S"}}};
  const std::vector<double>&steps = numbers.at("step"), &shares = numbers.at(key_of(row, column.key));
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto begin = shares.begin() + static_cast<std::ptrdiff_t>(i * column.bins);
    panel.ridges.push_back({static_cast<int64_t>(steps[i]), {begin, begin + static_cast<std::ptrdiff_t>(column.bins)}});
  }
  return panel;
}

/// TernGrad's Figure 2 (Wen et al., 2017, section 3.3): the stages of two workers' gradients over the training.
class TernGradFigure2 final : public Experiment {
 public:
  explicit TernGradFigure2(const ExperimentOptions& options)
      : setting_{.data = choose_data("terngrad-fig2", options, {"cifar10", "shapes"}),
                 .iterations = options.iterations.value_or(options.quick ? 800 : 8000),
                 .course = CifarNetCourse::quick} {
    workers_ = choose_workers(options, workers_, setting_.batch_size, 1);
    check_input(setting_.iterations >= 2, "--iterations: found ", setting_.iterations,
                ", expected at least 2, the first and the last");
    check_input(!options.seeds, "--seeds would change nothing: one run is looked at");
  }

  std::vector<Run> runs() const override {
    Run run = {.name = kRun, .flags = setting_.flags(), .places = setting_.data.places(), .steps = setting_.iterations};
    const auto more = ternary_flags(workers_);
    run.flags.insert(run.flags.end(), more.begin(), more.end());
    run.columns = {{"workers", std::to_string(workers_)}};
    run.study = [settings = settings_of(networks::cifarnet(), run)](const StudyProgress& progress) {
      return observe(settings, progress);
    };
    return {run};
  }

  Report report(const Results& results) const override {
    std::string text = setting_.sentence();
    text += fmt::format(" {} workers share each batch of {}, for {} steps.\n", workers_, setting_.batch_size,
                        setting_.iterations);
    text +=
        "\nValues are in units of S, the scaler that the workers share in a step (eq. 4), so all steps have one axis. "
        "The height of a bar is the square root of its share. Each panel is scaled to its highest bar. (a) to (c) are "
        "of the first worker. The outermost bars of (a), at ±1.5 S, also hold all values beyond. The paper's network "
        "is AlexNet on ImageNet, and its figure prints no numbers. So only the form can be compared.\n";
    const auto found = results.find(kRun);
    if (found == results.end()) return {.text = text, .figures = {}};
    const Numbers& numbers = found->second.numbers;
    return {.text = text + '\n' + table(numbers),
            .figures = {{"histograms.svg", figure(numbers)}},
            .tables = {{"histograms.csv", csv(numbers)}}};
  }

 private:
  std::string table(const Numbers& numbers) const {
    const ClippingLoss normal = normal_clipping_loss(kClip);
    std::vector<std::vector<std::string>> rows = {{"means over the histograms' steps"}};
    for (const Row& row : kRows) rows[0].emplace_back(row.tensor);
    rows[0].insert(rows[0].end(), {"of normal values", "the paper's"});
    const auto add = [&](const char* title, const char* what, double unit, const std::string& of_normal,
                         const char* papers) {
      std::vector<std::string> cells = {title};
      for (const Row& row : kRows)
        cells.push_back(fmt::format("{:.2f}", unit * summarize(numbers.at(key_of(row, what))).mean));
      cells.insert(cells.end(), {of_normal, papers});
      rows.push_back(cells);
    };
    add("length lost by clipping, %", "length", 100, fmt::format("{:.2f}", 100 * normal.length), "1.0 to 1.5");
    add("direction turned, degrees", "degrees", 1, fmt::format("{:.2f}", normal.degrees), "2 to 3");
    add("kurtosis", "kurtosis", 1, "3", "–");
    add("ternary elements that are 0, %", "zeros", 100, "–", "–");
    rows.push_back({"most levels of the average"});
    for (const Row& row : kRows)
      rows.back().push_back(fmt::format("{:.0f}", std::ranges::max(numbers.at(key_of(row, "levels")))));
    rows.back().insert(rows.back().end(), {"–", fmt::format("2N + 1 = {}", 2 * workers_ + 1)});
    const char* note =
        "\nThe losses that the paper prints are those of normally distributed values. If the kurtosis is above 3, the "
        "tails are heavier, and clipping takes more.\n";
    return markdown_table(rows) + note;
  }

  std::string figure(const Numbers& numbers) const {
    std::vector<RidgeRow> rows;
    for (const Row& row : kRows) {
      rows.push_back({.title = row.title, .panels = {}});
      for (const Column& column : kColumns) rows.back().panels.push_back(make_panel(column, row, numbers));
    }
    return draw_ridges("TernGrad, Figure 2: gradients on their way",
                       fmt::format("CifarNet · {} · {} workers · histograms from step 1 (back) to step {} (front)",
                                   setting_.data.name, workers_, setting_.iterations),
                       rows);
  }

  static std::string csv(const Numbers& numbers) {
    std::string text = "tensor,stage,step,bin_center_in_scalers,share\n";
    for (const Row& row : kRows)
      for (const Column& column : kColumns)
        for (const auto& [step, shares] : make_panel(column, row, numbers).ridges)
          for (size_t bin = 0; bin < column.bins; ++bin)
            text += fmt::format("{},{},{},{:.4f},{}\n", row.tensor, column.key, step,
                                kWidth * ((2 * static_cast<double>(bin) + 1) / static_cast<double>(column.bins) - 1),
                                shares[bin]);
    return text;
  }

  CifarNetSetting setting_;
  int64_t workers_ = 2;
};

}  // namespace

ExperimentEntry terngrad_fig2() {
  return {.name = "terngrad-fig2",
          .title = "TernGrad, Figure 2: histograms of original, clipped, ternary and averaged gradients",
          .data = "CIFAR-10: ./dev data cifar10",
          .time = "about 12 minutes on 2 cores; with --quick 90 seconds",
          .make = make_experiment<TernGradFigure2>};
}

}  // namespace tern::reproduce
