#include <fmt/format.h>

#include "tern/apps/reproduce/cifarnet_setting.h"
#include "tern/apps/reproduce/comparison_table.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/core/error.h"
#include "tern/networks/cifarnet.h"

namespace tern::reproduce {
namespace {

constexpr int64_t kStartWorkers = 2;

/// The flags of a row, besides those of TernGrad with two workers.
struct StartRow {
  const char *name, *title;
  bool ternary;
  std::vector<std::string> flags;
};

/// The start of TernGrad's training of CifarNet, at the paper's constant rate. Of the three ternary rows, one has no
/// clipping (section 3.3), and one keeps the last layer in float.
std::unique_ptr<Experiment> make_terngrad_start(const ExperimentOptions& options) {
  const CifarNetSetting setting = {.data = choose_data("terngrad-start", options, {"cifar10", "shapes"}),
                                   .iterations = options.iterations.value_or(options.quick ? 400 : 30'000)};
  check_input(options.workers.empty(), "--workers would change nothing: terngrad-start has ", kStartWorkers);
  const std::vector<StartRow> rows = {
      {"float", "float", false, {}},
      {"ternary", "TernGrad", true, {"--codec", "ternary"}},
      {"unclipped", "TernGrad without clipping", true, {"--codec", "ternary:clip=0"}},
      {"last-float", "TernGrad, last layer float", true, {"--codec", "ternary", "--keep-float", "fc3.*"}}};
  ComparisonGroup group = {.title = fmt::format("{} workers", kStartWorkers), .rows = {}};
  for (const StartRow& row : rows) {
    Run run = {.name = fmt::format("{}-{}-steps", row.name, setting.iterations),
               .program = networks::cifarnet().program(),
               .flags = setting.flags(),
               .places = setting.data.places(),
               .steps = setting.iterations,
               .columns = {{"gradients", row.title}}};
    if (row.ternary)
      run.flags.insert(run.flags.end(),
                       {"--workers", std::to_string(kStartWorkers), "--transport", "inproc", "--exchange", "server"});
    run.flags.insert(run.flags.end(), row.flags.begin(), row.flags.end());
    group.rows.push_back({.run = run, .label = row.title, .published = {}, .published_steps = {}});
  }
  return std::make_unique<ComparisonTable>(
      ComparisonTable::Content{.heading = "TernGrad on CifarNet: the start of training",
                               .setting = fmt::format("{} TernGrad has two workers and `--exchange server`; float is "
                                                      "one process with the whole batch. All rows train "
                                                      "for {} of the paper's 300,000 steps, so they show how training "
                                                      "starts. If the row without clipping is behind, "
                                                      "clipping helps from the start. If the row with a float last "
                                                      "layer is ahead, that layer's codes slow the start.",
                                                      setting.sentence(), setting.iterations),
                               .seeds = options.seeds.value_or(1),
                               .groups = {group}});
}

}  // namespace

ExperimentEntry terngrad_start() {
  return {.name = "terngrad-start",
          .title = "TernGrad on CifarNet at the paper's rate: what slows the start: codes, clipping, or the last layer",
          .data = "CIFAR-10: ./dev data cifar10",
          .time = "hours on 2 cores; with --quick 2 minutes",
          .device = kAnyDevice,
          .make = make_terngrad_start};
}

}  // namespace tern::reproduce
