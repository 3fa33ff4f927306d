#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/experiment.h"
#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/ist_costs.h"
#include "tern/core/error.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;

/// IST's Figure 2 (Yuan et al., section 3.4): traffic and operations per step by the number of machines, for data
/// parallel and IST, for a perceptron with three hidden layers. It shows the paper's printed formulas, the exact sums,
/// and the counts of tern's ledgers while tern trains that perceptron.
class IstFigure2 final : public Experiment {
 public:
  /// Throws InputError with the option if one is invalid.
  explicit IstFigure2(const ExperimentOptions& options);

  std::vector<Run> runs() const override;
  Report report(const Results& results) const override;

 private:
  /// The counts for this number of workers; null if they are not there.
  const Numbers* counted(int64_t workers, const Results& results) const;
  std::string traffic_table(const Results& results) const;
  std::string operations_table(const Results& results) const;
  std::string csv(const Results& results) const;
  std::string traffic_figure(const Results& results) const;
  std::string operations_figure(const Results& results) const;
  std::string network() const;

  IstCosts costs_;
  std::vector<int64_t> workers_;  ///< worker numbers of the runs
  std::vector<int64_t> places_;   ///< rows of the tables: these and the paper's
};

constexpr int64_t kCountedWorkers[] = {1, 2, 4, 8, 16, 32};

std::string run_name(int64_t workers) { return fmt::format("counted-{}-workers", workers); }

IstFigure2::IstFigure2(const ExperimentOptions& options) {
  check_input(options.data.empty() && options.data_dir.empty(), "--data would change nothing: ist-fig2 reads no files");
  check_input(!options.iterations, "--iterations would change nothing: ist-fig2 counts one round");
  check_input(!options.seeds, "--seeds would change nothing: ist-fig2 counts, and numbers do not differ");
  if (options.quick) costs_.widths = {100, 400, 400, 400, 20};
  const auto workers = options.workers.empty() ? std::vector<int64_t>{1, 2, 4, 8} : options.workers;
  std::set<int64_t> counted(workers.begin(), workers.end());
  check_input(*counted.begin() >= 1 && *counted.rbegin() <= 32, "--workers: found ",
              *counted.begin() < 1 ? *counted.begin() : *counted.rbegin(), ", expected 1 to 32");
  workers_.assign(counted.begin(), counted.end());
  counted.insert(std::begin(kCountedWorkers), std::end(kCountedWorkers));
  places_.assign(counted.begin(), counted.end());
}

std::vector<Run> IstFigure2::runs() const {
  std::vector<Run> all;
  for (const int64_t workers : workers_)
    all.push_back(
        {.name = run_name(workers),
         .flags = {fmt::format("widths={}", fmt::join(costs_.widths, ",")), fmt::format("batch={}", costs_.batch),
                   fmt::format("local-steps={}", costs_.local_steps), fmt::format("workers={}", workers)},
         .places = {},
         .steps = costs_.local_steps,
         .columns = {{"workers", std::to_string(workers)}},
         .study = [costs = costs_, workers](const StudyProgress& progress) {
           return count_ist_costs(costs, static_cast<int>(workers), progress);
         }});
  return all;
}

const Numbers* IstFigure2::counted(int64_t workers, const Results& results) const {
  const auto result = results.find(run_name(workers));
  return result == results.end() ? nullptr : &result->second.numbers;
}

double share_that_moves(int64_t n) { return static_cast<double>(n - 1) / static_cast<double>(n); }

std::string scaled_cell(double value, double unit) { return fmt::format("{:.4g}", value / unit); }

/// Compares a counted number of floats with a formula.
std::string agreement(double counted, double expected) {
  const double difference = counted - expected;
  return std::abs(difference) <= 1e-9 * expected ? "equal" : fmt::format("{:+.4g}", difference);
}

/// A line of `value(n)` over the numbers of workers, on a logarithmic x axis.
template <class Value>
Series line(const char* label, const char* color, const std::vector<int64_t>& workers, Value value) {
  Series series = {.label = label, .color = color, .points = {}};
  for (const int64_t n : workers) series.points.emplace_back(std::log2(static_cast<double>(n)), value(n));
  return series;
}

Series dots(const char* label, std::vector<std::pair<double, double>> points) {
  return {.label = label, .color = kInk, .points = std::move(points), .width = 0, .markers = true};
}

Chart chart_over(const std::vector<int64_t>& workers, const char* title) {
  Chart chart = {.title = title, .x_label = "machines", .series = {}};
  for (const int64_t n : workers) chart.x_ticks.emplace_back(std::log2(static_cast<double>(n)), std::to_string(n));
  constexpr double kMargin = 0.15;  // room for the dots at the ends
  chart.x_range = {chart.x_ticks.front().first - kMargin, chart.x_ticks.back().first + kMargin};
  return chart;
}

std::string IstFigure2::network() const {
  return fmt::format("{} · batch {} · J = {}", fmt::join(costs_.widths, "-"), costs_.batch, costs_.local_steps);
}

std::string IstFigure2::traffic_table(const Results& results) const {
  std::vector<std::vector<std::string>> rows = {{"machines", "data parallel, paper", "counted", "against (n−1)/n of it",
                                                 "IST, paper", "IST, exact", "counted", "against (n−1)/n of it"}};
  constexpr double kMillion = 1e6;
  for (const int64_t n : places_) {
    const double parallel = costs_.parallel_floats(n), exact = costs_.exact_floats(n);
    std::vector<std::string> row = {std::to_string(n),
                                    scaled_cell(parallel, kMillion),
                                    "–",
                                    "–",
                                    scaled_cell(costs_.printed_floats(n), kMillion),
                                    scaled_cell(exact, kMillion),
                                    "–",
                                    "–"};
    if (const Numbers* found = counted(n, results)) {
      const double parallel_found = found->at("parallel_floats").at(0), ist_found = found->at("ist_floats").at(0);
      row[2] = scaled_cell(parallel_found, kMillion);
      row[3] = agreement(parallel_found, share_that_moves(n) * parallel);
      row[6] = scaled_cell(ist_found, kMillion);
      row[7] = agreement(ist_found, share_that_moves(n) * exact);
    }
    rows.push_back(row);
  }
  return markdown_table(rows);
}

std::string IstFigure2::operations_table(const Results& results) const {
  std::vector<std::vector<std::string>> rows = {
      {"machines", "data parallel, paper", "IST, paper", "IST, exact", "counted", "against the exact form"}};
  constexpr double kGiga = 1e9;
  for (const int64_t n : places_) {
    const double exact = costs_.exact_operations(n);
    std::vector<std::string> row = {std::to_string(n),
                                    scaled_cell(costs_.parallel_operations(), kGiga),
                                    scaled_cell(costs_.printed_operations(n), kGiga),
                                    scaled_cell(exact, kGiga),
                                    "–",
                                    "–"};
    if (const Numbers* found = counted(n, results)) {
      row[4] = scaled_cell(found->at("ist_operations").at(0), kGiga);
      row[5] = agreement(found->at("ist_operations").at(0), exact);
    }
    rows.push_back(row);
  }
  return markdown_table(rows);
}

std::string IstFigure2::csv(const Results& results) const {
  std::string text =
      "machines,parallel_floats,parallel_floats_counted,ist_floats_printed,ist_floats_exact,ist_floats_counted,"
      "parallel_operations,ist_operations_printed,ist_operations_exact,ist_operations_counted\n";
  for (const int64_t n : places_) {
    const Numbers* found = counted(n, results);
    const auto count = [&](const char* name) { return found ? fmt::format("{}", found->at(name).at(0)) : ""; };
    text +=
        fmt::format("{},{},{},{},{},{},{},{},{},{}\n", n, costs_.parallel_floats(n), count("parallel_floats"),
                    costs_.printed_floats(n), costs_.exact_floats(n), count("ist_floats"), costs_.parallel_operations(),
                    costs_.printed_operations(n), costs_.exact_operations(n), count("ist_operations"));
  }
  return text;
}

std::string IstFigure2::traffic_figure(const Results& results) const {
  Chart chart = chart_over(places_, "Floats that travel to the machines in a step");
  chart.y_scale = Scale::logarithmic;
  chart.series = {line("data parallel", kBlue, places_, [&](int64_t n) { return costs_.parallel_floats(n); }),
                  line("IST, printed", kPaleGreen, places_, [&](int64_t n) { return costs_.printed_floats(n); }),
                  line("IST, exact", kGreen, places_, [&](int64_t n) { return costs_.exact_floats(n); })};
  for (const size_t i : {size_t{0}, size_t{2}}) {
    Series moving = {.label = "", .color = chart.series[i].color, .points = {}, .width = 1, .opacity = 0.5};
    for (size_t place = 0; place < places_.size(); ++place)
      if (const int64_t n = places_[place]; n > 1)
        moving.points.emplace_back(chart.series[i].points[place].first,
                                   share_that_moves(n) * chart.series[i].points[place].second);
    chart.series.push_back(moving);
  }
  std::vector<std::pair<double, double>> points;
  for (const int64_t n : workers_)
    if (const Numbers* found = counted(n, results); found && n > 1)
      for (const char* name : {"parallel_floats", "ist_floats"})
        points.emplace_back(std::log2(static_cast<double>(n)), found->at(name).at(0));
  chart.series.push_back(dots("counted", points));
  return draw_charts("IST, Figure 2: traffic", network() + " · thin: (n−1)/n of it", {&chart, 1});
}

std::string IstFigure2::operations_figure(const Results& results) const {
  Chart chart = chart_over(places_, "GFLOP of a step");
  constexpr double kGiga = 1e9;
  chart.series = {
      line("data parallel", kBlue, places_, [&](int64_t) { return costs_.parallel_operations() / kGiga; }),
      line("IST, printed", kPaleGreen, places_, [&](int64_t n) { return costs_.printed_operations(n) / kGiga; }),
      line("IST, exact", kGreen, places_, [&](int64_t n) { return costs_.exact_operations(n) / kGiga; })};
  std::vector<std::pair<double, double>> points;
  for (const int64_t n : workers_)
    if (const Numbers* found = counted(n, results))
      points.emplace_back(std::log2(static_cast<double>(n)), found->at("ist_operations").at(0) / kGiga);
  chart.series.push_back(dots("counted", points));
  chart.y_range = {0, 1.1 * costs_.printed_operations(1) / kGiga};
  return draw_charts("IST, Figure 2: computation", network(), {&chart, 1});
}

Report IstFigure2::report(const Results& results) const {
  const std::string text = fmt::format(
      "The network is the perceptron {}. Only its matrices count, as in the paper. The paper draws Figure 2 and prints "
      "no numbers, so its columns are the formulas of section 3.4. The printed IST formulas count the first and the "
      "last matrix twice. The exact form counts them once.{}\n\nThe counted numbers come from the ledgers of as many "
      "in-process workers, which train this network. They are half of the payload that all workers receive, because "
      "the other half goes the other way (in a ring the second half, with IST the uploads). tern moves (n−1)/n of the "
      "exact sums: in a ring a machine already has its own share, and with IST rank 0 keeps the model and trains a "
      "subnet itself.\n\n## Million floats a step, all machines\n\n{}\n## GFLOP a step, all machines\n\nThis counts "
      "four operations for each weight and example, as the paper does. Training takes six. Data-parallel machines "
      "share one batch. With IST each machine has its own batch.\n\n{}",
      network(), costs_.widths == IstCosts().widths ? "" : " **A tenth of the paper's widths.**",
      traffic_table(results), operations_table(results));
  return {.text = text,
          .figures = {{"traffic.svg", traffic_figure(results)}, {"operations.svg", operations_figure(results)}},
          .tables = {{"costs.csv", csv(results)}}};
}

}  // namespace

ExperimentEntry ist_fig2() {
  return {.name = "ist-fig2",
          .title = "IST, Figure 2: traffic and operations of a step by number of machines",
          .data = "none",
          .time = "1 minute on 2 cores; with --quick seconds",
          .make = make_experiment<IstFigure2>};
}

}  // namespace tern::reproduce
