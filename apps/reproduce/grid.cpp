#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "tern/apps/advise/convergence.h"
#include "tern/apps/reproduce/codec_comparison.h"
#include "tern/apps/reproduce/engine/data_choice.h"
#include "tern/apps/reproduce/engine/text.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/apps/reproduce/sample.h"
#include "tern/apps/reproduce/step_forecast.h"
#include "tern/dist/comm/link.h"
#include "tern/networks/airbench.h"
#include "tern/networks/lenet.h"
#include "tern/trainer/report/chart.h"

namespace tern::reproduce {
namespace {

using namespace trainer;
using advise::kLosable, advise::kTarget;

/// A row of the grid: a way to train together.
struct GridMethod {
  const char* name;   ///< in the names of runs: "qsgd-4-bit"
  const char* label;  ///< "QSGD"
  std::string flags;  ///< what a user types: "--codec qsgd:bits=4"
  size_t panel;       ///< the panel of each figure that shows it
  const char* color;
  bool concludes = false;  ///< has more seeds: what to use with airbench94 rests on it
};

/// A column of the grid: a network, its data, and the schedule of all its runs.
struct GridNetwork {
  std::string name, title;
  const networks::Network& network;
  DataChoice data;
  std::vector<std::string> flags = {};  ///< besides the network's defaults
  int64_t batch;                        ///< of all workers
  int64_t iterations;
  int64_t local_steps;       ///< H of the methods that exchange in rounds
  int64_t eval_every;        ///< steps; a multiple of `local_steps`, so that what is evaluated was exchanged
  int64_t timed_steps;       ///< of the runs that measure time
  int64_t timed_turns;       ///< of each of these runs; the one with the median time counts
  int64_t seeds;             ///< of a method
  int64_t concluding_seeds;  ///< of a method with GridMethod::concludes; not fewer
  std::vector<GridMethod> methods;
};

constexpr const char* kPanels[] = {"a code in every step", "few numbers in every step", "rounds of local steps",
                                   "independent subnets"};
constexpr size_t kFloatRow = 0, kBf16Row = 1;  ///< in the list of methods

std::vector<GridMethod> grid_methods(int64_t local_steps, const std::string& demo) {
  const std::string rounds = fmt::format(" --local-steps {}", local_steps);
  return {
      {"float", "float", "--codec none", 0, kInk, true},
      {"bf16", "bf16", "--codec bf16 --exchange ring", 0, kGrey, true},
      {"ternary", "ternary", "--codec ternary", 0, kBlue},
      {"qsgd-4-bit", "QSGD", "--codec qsgd:bits=4", 0, kOrange},
      {"1bitsgd", "1BitSGD", "--codec onebit", 0, kGreen, true},
      {"hadamard-2-bit", "Hadamard", "--codec hadamard:bits=2", 0, kPurple},
      {"powersgd-2", "PowerSGD", "--exchange powersgd:rank=2", 1, kBlue},
      {"topk", "top 1 %", "--codec error-feedback:topk:ratio=0.01", 1, kOrange},
      {"demo", "DeMo", demo, 1, kGreen},
      {"local-sgd", "local SGD", "--method local-sgd" + rounds, 2, kBlue},
      {"local-hadamard", "local SGD, Hadamard", "--method local-sgd" + rounds + " --codec hadamard:bits=2", 2, kTeal},
      {"diloco", "DiLoCo", "--method diloco" + rounds, 2, kOrange},
      {"noloco", "NoLoCo", "--method noloco" + rounds, 2, kPurple},
      {"sparseloco", "SparseLoCo", "--method sparseloco" + rounds, 2, kGreen}};
}

GridNetwork lenet_network(const DataChoice& data, bool quick) {
  constexpr int64_t kLocalSteps = 10;
  GridNetwork network = {.name = "lenet",
                         .title = "LeNet on " + data.name,
                         .network = networks::lenet(),
                         .data = data,
                         .batch = 64,
                         .iterations = quick ? 200 : 2000,
                         .local_steps = kLocalSteps,
                         .eval_every = quick ? 2 * kLocalSteps : 4 * kLocalSteps,
                         .timed_steps = quick ? 40 : 100,
                         .timed_turns = quick ? 1 : 3,
                         .seeds = quick ? 1 : 5,
                         .concluding_seeds = quick ? 1 : 5,
                         .methods = grid_methods(kLocalSteps, "--method demo --optimizer sgd --lr 0.001")};
  const std::string ist = fmt::format("--method ist --local-steps {}", kLocalSteps);
  network.methods.push_back({"ist", "IST", ist, 3, kBlue});
  network.methods.push_back({"ist-qsgd", "IST with QSGD", ist + " --codec qsgd:bits=4", 3, kOrange});
  return network;
}

GridNetwork airbench_network(const DataChoice& data, bool quick) {
  constexpr int64_t kLocalSteps = 20;
  return {.name = "airbench",
          .title = "airbench94 on " + data.name,
          .network = networks::airbench(),
          .data = data,
          .flags = {"--precision", "bf16", "--tta", "mirror"},
          .batch = 2000,
          .iterations = quick ? 40 : 200,
          .local_steps = kLocalSteps,
          .eval_every = kLocalSteps,
          .timed_steps = kLocalSteps,
          .timed_turns = 1,
          .seeds = 1,
          .concluding_seeds = quick ? 1 : 3,
          .methods = grid_methods(kLocalSteps, "--method demo --optimizer sgd --lr 0.001 --group *:weight-decay=0")};
}

/// A network between the workers.
struct GridLink {
  const char *name, *spec;  ///< spec: the value of --link
  bool checked = false;     ///< real runs check its forecasts

  LinkCost cost() const { return cost_of(parse_link(spec)); }
};
constexpr const char* kNearLatency = "0.1 ms";  ///< of the links whose name has no latency
constexpr GridLink kLinks[] = {
    {"10gbit", "rate=10gbit,latency=0.1ms"},         {"1gbit", "rate=1gbit,latency=0.1ms"},
    {"100mbit", "rate=100mbit,latency=0.1ms", true}, {"10mbit", "rate=10mbit,latency=0.1ms"},
    {"100mbit-20ms", "rate=100mbit,latency=20ms"},   {"10mbit-20ms", "rate=10mbit,latency=20ms", true}};
constexpr const char* kCheckedMethods[] = {"bf16", "ternary", "sparseloco"};
constexpr int64_t kTimedWorkers = 2;  ///< one for each of two cores

/// What a method's finished runs say.
struct GridRow {
  const GridMethod* method = nullptr;
  Sample accuracy = {};   ///< percent
  double step_bytes = 0;  ///< payload that rank 0 sends in a mean step
  std::optional<StepForecast> step = {};
  std::optional<double> target_steps = {};  ///< nullopt: a seed never has the target's accuracy

  std::optional<double> target_bytes() const {
    return target_steps ? std::optional(*target_steps * step_bytes) : std::nullopt;
  }
  std::optional<double> seconds(const GridLink& link, double steps) const {
    return step ? std::optional(steps * step->seconds(link.cost())) : std::nullopt;
  }
  std::optional<double> target_seconds(const GridLink& link) const {
    return target_steps ? seconds(link, *target_steps) : std::nullopt;
  }
};

std::string number_text(double number) {
  return number < 999.5 ? fmt::format("{:.3g}", number) : fmt::format("{:.0f}", number);
}
std::string number_cell(const std::optional<double>& number) { return number ? number_text(*number) : "–"; }

/// The methods of today and those of the three papers, trained by one schedule: accuracy, bytes, and time on links.
class Grid final : public Experiment {
 public:
  Grid(GridNetwork network, int64_t workers) : network_(std::move(network)), workers_(workers) {}

  std::vector<Run> runs() const override {
    std::vector<Run> all;
    for (const GridMethod& method : network_.methods) all.push_back(training(method, 1));
    for (int64_t turn = 1; turn <= network_.timed_turns; ++turn) {
      for (const GridMethod& method : network_.methods) all.push_back(timing(method, nullptr, turn));
      for (const GridLink& link : kLinks)
        for (const char* name : kCheckedMethods)
          if (link.checked) all.push_back(timing(named(name), &link, turn));
    }
    for (int64_t seed = 2; seed <= network_.concluding_seeds; ++seed)
      for (const GridMethod& method : network_.methods)
        if (seed <= seeds(method)) all.push_back(training(method, seed));
    return all;
  }

  Report report(const Results& results) const override {
    std::vector<GridRow> rows;
    for (const GridMethod& method : network_.methods) rows.push_back(row(method, results));
    std::string text = setting() + "\n## What it cost\n\n" + table(rows) + "\n## What to use\n\n" + advice(rows) +
                       "\n## Forecasts beside real runs\n\n" + checks(results);
    Report report = {.text = text, .figures = {{"bytes.svg", figure(rows, results, nullptr)}}};
    for (const GridLink& link : kLinks)
      report.figures[fmt::format("time-{}.svg", link.name)] = figure(rows, results, &link);
    return report;
  }

 private:
  int64_t seeds(const GridMethod& method) const {
    return method.concludes ? network_.concluding_seeds : network_.seeds;
  }
  const GridMethod& named(std::string_view name) const {
    return *std::ranges::find_if(network_.methods, [&](const GridMethod& method) { return method.name == name; });
  }

  Run run(const GridMethod& method, std::string name, int64_t workers, int64_t steps, int64_t seed) const {
    Run run = {.name = std::move(name),
               .program = network_.network.program(),
               .flags = {"--data", network_.data.name},
               .places = network_.data.places(),
               .steps = steps,
               .columns = {{"method", method.name}, {"workers", std::to_string(workers)}},
               .checkpoint_every = std::max<int64_t>(20, network_.iterations / 4)};
    run.flags.insert(run.flags.end(), network_.flags.begin(), network_.flags.end());
    std::istringstream words(method.flags);
    for (std::string word; words >> word;) run.flags.push_back(word);
    for (const auto& [flag, value] : {std::pair{"--batch-size", network_.batch / workers_ * workers},
                                      {"--iterations", steps},
                                      {"--workers", workers},
                                      {"--seed", seed}})
      run.flags.insert(run.flags.end(), {flag, std::to_string(value)});
    run.flags.insert(run.flags.end(), {"--transport", "inproc"});
    return run;
  }
  Run training(const GridMethod& method, int64_t seed) const {
    Run made = run(method,
                   fmt::format("{}-{}-{}-workers-{}-steps-seed-{}", network_.name, method.name, workers_,
                               network_.iterations, seed),
                   workers_, network_.iterations, seed);
    made.flags.insert(made.flags.end(), {"--eval-every", std::to_string(network_.eval_every)});
    made.columns.insert(made.columns.end(), {{"link", ""}, {"seed", std::to_string(seed)}});
    return made;
  }
  /// A short run with a core and a worker's batch for each of two ranks; messages wait if there is a link.
  Run timing(const GridMethod& method, const GridLink* link, int64_t turn) const {
    std::string name = fmt::format("{}-{}-timed", network_.name, method.name);
    if (link) name += fmt::format("-{}", link->name);
    if (turn > 1) name += fmt::format("-turn-{}", turn);
    Run made = run(method, std::move(name), kTimedWorkers, network_.timed_steps, 1);
    made.flags.insert(made.flags.end(), {"--eval-every", "0", "--threads", "1"});
    made.measures_time = true;
    if (link) made.flags.insert(made.flags.end(), {"--link", link->spec});
    made.columns.insert(made.columns.end(), {{"link", link ? link->name : ""}, {"seed", "1"}});
    return made;
  }

  static const RunResult* find(const Results& results, const Run& run) {
    const auto found = results.find(run.name);
    return found == results.end() ? nullptr : &found->second;
  }
  std::vector<const RunResult*> trained(const GridMethod& method, const Results& results) const {
    std::vector<const RunResult*> found;
    for (int64_t seed = 1; seed <= seeds(method); ++seed)
      if (const RunResult* result = find(results, training(method, seed))) found.push_back(result);
    return found;
  }
  /// The run with the median time, of the turns that have finished; of an even number, the faster one in the middle.
  const RunResult* timed(const GridMethod& method, const Results& results, const GridLink* link = nullptr) const {
    std::vector<const RunResult*> turns;
    for (int64_t turn = 1; turn <= network_.timed_turns; ++turn)
      if (const RunResult* result = find(results, timing(method, link, turn))) turns.push_back(result);
    if (turns.empty()) return nullptr;
    std::ranges::sort(turns, {}, &RunResult::seconds);
    return turns[(turns.size() - 1) / 2];
  }
  Sample accuracy(const GridMethod& method, const Results& results) const {
    std::vector<double> percent;
    for (const RunResult* result : trained(method, results)) percent.push_back(100 * result->score);
    return summarize(percent);
  }
  /// In 0 to 1; nullopt until the float ring has run.
  std::optional<double> target(const Results& results) const {
    const Sample floats = accuracy(network_.methods[kFloatRow], results);
    return floats.count > 0 ? std::optional(kTarget * floats.mean / 100) : std::nullopt;
  }
  static double step_bytes(const RunResult& result, int64_t steps) {
    return static_cast<double>(result.bytes_sent_payload.value_or(0)) / static_cast<double>(steps);
  }

  /// A step of `workers` ranks; rank 0 sends `bytes` in it.
  StepForecast forecast(const GridMethod& method, const RunResult& timed, int64_t workers, double bytes) const {
    return {network_.network, timing(method, nullptr, 1), timed, static_cast<int>(workers), bytes};
  }

  GridRow row(const GridMethod& method, const Results& results) const {
    GridRow row = {.method = &method, .accuracy = accuracy(method, results)};
    const auto found = trained(method, results);
    for (const RunResult* result : found)
      row.step_bytes += step_bytes(*result, network_.iterations) / static_cast<double>(found.size());
    if (const RunResult* result = timed(method, results))
      row.step = forecast(method, *result, workers_, row.step_bytes);
    const auto level = target(results);
    std::vector<double> steps;
    for (const RunResult* result : found)
      if (const auto at = level ? crossing(*result, *level) : std::nullopt) steps.push_back(at->steps);
    if (!steps.empty() && steps.size() == found.size()) row.target_steps = summarize(steps).mean;
    return row;
  }

  std::string setting() const {
    std::string command = network_.network.program();
    for (const std::string& word : network_.flags) command += ' ' + word;
    const bool has_subnets = std::ranges::any_of(
        network_.methods, [](const GridMethod& method) { return method.flags.starts_with("--method ist"); });
    return fmt::format(
        "{}, {} workers with {} samples each, {} steps, `{}` with its default optimizer and schedule, except for DeMo, "
        "whose flags show its own. Methods with rounds exchange every {} steps. Accuracies and steps are means over "
        "seeds (n is their number), accuracies with their standard error. *MB* is the payload that rank 0 sends. "
        "*Target* is {:.0f} % of the float ring's last accuracy, on a line between two evaluations. *Seconds* are "
        "those if each worker had a machine with one core, on links with {} of latency, or with what their name says: "
        "the time of a step's computation, of its codes, and of its messages, which travel as `dist/cost` plans them. "
        "Computation and codes are measured with {} ranks, a core each{}.{}\n",
        network_.title, workers_, network_.batch / workers_, network_.iterations, command, network_.local_steps,
        100 * kTarget, kNearLatency, kTimedWorkers,
        network_.timed_turns > 1 ? fmt::format(" (the median of {} turns)", network_.timed_turns) : "",
        has_subnets ? " So IST's subnets were larger then, and its seconds are too high." : "");
  }

  std::string table(const std::vector<GridRow>& rows) const {
    std::vector<std::vector<std::string>> cells = {{"method", "flags", "n", "accuracy, %", "MB", "bf16 ring ÷ it",
                                                    "steps to target", "MB to target", "ms a step"}};
    for (const GridLink& link : kLinks) cells.front().push_back(fmt::format("s to target, {}", link.name));
    for (const GridRow& row : rows) {
      const bool ran = row.accuracy.count > 0;
      const auto scaled = [](std::optional<double> number, double factor) {
        return number_cell(number ? std::optional(factor * *number) : std::nullopt);
      };
      cells.push_back({row.method->label, fmt::format("`{}`", row.method->flags), std::to_string(row.accuracy.count),
                       mean_cell(row.accuracy),
                       ran ? number_text(row.step_bytes * static_cast<double>(network_.iterations) / 1e6) : "–",
                       ran && row.step_bytes > 0 && rows[kBf16Row].step_bytes > 0
                           ? number_text(rows[kBf16Row].step_bytes / row.step_bytes)
                           : "–",
                       row.target_steps ? fmt::format("{:.0f}", *row.target_steps) : "–",
                       scaled(row.target_bytes(), 1e-6),
                       scaled(row.step ? std::optional(row.step->seconds({})) : std::nullopt, 1e3)});
      for (const GridLink& link : kLinks) cells.back().push_back(number_cell(row.target_seconds(link)));
    }
    return markdown_table(cells);
  }

  /// For each link the method that reaches the target first, of those that end within `kLosable` of the float ring.
  std::string advice(const std::vector<GridRow>& rows) const {
    std::string text = fmt::format(
        "For each link, the method that reaches the target first, of those whose last accuracy is at most {} points "
        "below the float ring's:\n\n",
        kLosable);
    for (const GridLink& link : kLinks) text += advice(rows, link);
    return text;
  }
  std::string advice(const std::vector<GridRow>& rows, const GridLink& link) const {
    const GridRow *best = nullptr, &base = rows[kBf16Row];
    for (const GridRow& row : rows) {
      const auto seconds = row.target_seconds(link);
      if (!seconds || row.accuracy.mean < rows[kFloatRow].accuracy.mean - kLosable) continue;
      if (!best || *seconds < *best->target_seconds(link)) best = &row;
    }
    if (!best) return fmt::format("- **{}**: no finished and timed method reaches the target.\n", link.name);
    const double fastest = *best->target_seconds(link);
    std::string text = fmt::format("- **{}**: {}, `{}`: {} s (n = {})", link.name, best->method->label,
                                   best->method->flags, number_text(fastest), best->accuracy.count);
    if (const auto slower = base.target_seconds(link); slower && best != &base)
      text += fmt::format("; the bf16 ring takes {} s, {} times as long", number_text(*slower),
                          number_text(*slower / fastest));
    return text + ".\n";
  }

  std::string checks(const Results& results) const {
    std::vector<std::vector<std::string>> cells = {
        {"method", "link", "forecast, ms a step", "real, ms a step", "real ÷ forecast"}};
    const auto steps = static_cast<double>(network_.timed_steps);
    for (const char* name : kCheckedMethods)
      for (const GridLink& link : kLinks) {
        if (!link.checked) continue;
        const GridMethod& method = named(name);
        const RunResult *free = timed(method, results), *real = timed(method, results, &link);
        if (!free || !real) continue;
        const double expected =
            forecast(method, *free, kTimedWorkers, step_bytes(*free, network_.timed_steps)).seconds(link.cost());
        cells.push_back({method.label, link.name, number_cell(1e3 * expected), number_cell(1e3 * real->seconds / steps),
                         fmt::format("{:.2f}", real->seconds / steps / expected)});
      }
    return fmt::format(
               "{} ranks with a core each, {} steps. In a real run each message waits as long as on the link.\n",
               kTimedWorkers, network_.timed_steps) +
           '\n' + markdown_table(cells);
  }

  /// The test error of seed 1 over the bytes that rank 0 sent, or over time on a link; both axes are logarithmic.
  std::string figure(const std::vector<GridRow>& rows, const Results& results, const GridLink* link) const {
    std::vector<Chart> charts;
    for (size_t panel = 0; panel < std::size(kPanels); ++panel) {
      Chart chart = {.title = std::string("test error, %: ") + kPanels[panel],
                     .x_label = link ? fmt::format("seconds, {}", link->name) : "MB sent by rank 0",
                     .series = {},
                     .x_scale = Scale::logarithmic,
                     .y_scale = Scale::logarithmic};
      bool shows_one = false;
      for (const GridRow& row : rows) {
        const bool is_base = &row == &rows[kBf16Row];
        if (row.method->panel != panel && !is_base) continue;
        Series line = {.label = row.method->label, .color = row.method->color, .points = {}};
        if (const RunResult* result = find(results, training(*row.method, 1)))
          for (const CurvePoint& point : result->curve) {
            const auto x = link ? row.seconds(*link, static_cast<double>(point.step))
                                : std::optional(static_cast<double>(point.step) * row.step_bytes / 1e6);
            if (x && *x > 0 && point.score < 1) line.points.emplace_back(*x, 100 * (1 - point.score));
          }
        shows_one = shows_one || row.method->panel == panel;
        chart.series.push_back(line);
      }
      if (shows_one) charts.push_back(chart);
    }
    std::vector<Series> lines;
    for (const Chart& chart : charts) lines.insert(lines.end(), chart.series.begin(), chart.series.end());
    for (Chart& chart : charts) {
      chart.x_range = extent(lines, &Point::first);
      chart.y_range = extent(lines);
    }
    return draw_charts(fmt::format("{}: test error over {}", network_.title,
                                   link ? fmt::format("time on a link of {}", link->name) : "bytes"),
                       "seed 1; the bf16 ring is grey in each panel; all panels have the same axes", charts);
  }

  GridNetwork network_;
  int64_t workers_;
};

std::unique_ptr<Experiment> make_grid(const ExperimentOptions& options) {
  const DataChoice data = choose_data("grid", options, {"mnist", "digits", "cifar10", "shapes"});
  const bool digits = data.name == "mnist" || data.name == "digits";
  GridNetwork network = digits ? lenet_network(data, options.quick) : airbench_network(data, options.quick);
  network.iterations = options.iterations.value_or(network.iterations);
  network.seeds = options.seeds.value_or(network.seeds);
  network.concluding_seeds = options.seeds.value_or(network.concluding_seeds);
  const int64_t workers = choose_workers(options, 4, network.batch);
  return std::make_unique<Grid>(std::move(network), workers);
}

}  // namespace

ExperimentEntry grid() {
  return {.name = "grid",
          .title = "Grid: methods of today beside the papers', accuracy, bytes, and time on six links",
          .data = "MNIST (LeNet): ./dev data mnist; or CIFAR-10 (airbench94): ./dev data cifar10",
          .time = "LeNet 2 hours on 2 cores, airbench94 hours; with --quick LeNet 5 minutes",
          .device = kAnyDevice,
          .make = make_grid};
}

}  // namespace tern::reproduce
