#include <fmt/format.h>

#include <algorithm>

#include "tern/apps/reproduce/markdown.h"
#include "tern/apps/reproduce/qsgd_fig2.h"
#include "tern/trainer/report/chart.h"

namespace tern {
namespace {

using namespace trainer;

/// The paper counts coding as communication.
double communication(const TimeShares& time) { return time.encode + time.wait + time.decode; }

std::string seconds(double value) { return fmt::format("{:.1f}", value); }

}  // namespace

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

/// As the paper draws it: communication below, solid, computation above, faint.
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
      "Rank 0's time of an epoch, from {} to {} steps measured. Workers are threads of one machine behind `--link "
      "{}`: they share its cores, so that computation, unlike on a GPU for each, does not fall with their number; "
      "what they wait for one another counts as communication, as do coding and decoding (section 5). Nothing "
      "overlaps, where the paper uses double buffering. LeNet stands for the paper's communication-intensive "
      "networks, ResNet-20 for its computation-intensive ones.\n\nThe paper prints of its figure: AlexNet, 16 GPUs, "
      "more than 80 % communication in 32 bit; with 4 bit communication 4 times shorter, the epoch 2.5 times. LSTM, 2 "
      "GPUs: 71 %, 6.8 times, 2.7 times.\n",
      std::min(steps(networks()[0]), steps(networks()[1])), std::max(steps(networks()[0]), steps(networks()[1])),
      kLink);
  for (const Network& network : networks())
    text += fmt::format("\n## {}\n\n{}", network.title, table(network, results));
  return {.text = text, .figures = {{"epoch.svg", figure(results)}}};
}

}  // namespace tern
