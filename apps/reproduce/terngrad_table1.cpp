#include <fmt/format.h>

#include <algorithm>

#include "tern/apps/reproduce/cifarnet_setting.h"
#include "tern/apps/reproduce/comparison_table.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/core/error.h"
#include "tern/networks/cifarnet.h"

namespace tern::reproduce {
namespace {

/// Two rows of TernGrad's Table 1; accuracies in percent.
struct Pair {
  int64_t batch_size, workers, steps;
  double with_floats, ternary;
};
constexpr Pair kPairs[] = {{128, 2, 300'000, 86.56, 85.64}, {2048, 16, 18'750, 83.19, 82.80}};

ComparisonRow make_row(const CifarNetSetting& setting, const Pair& pair, bool ternary) {
  Run run = {.name = fmt::format("{}{}-batch-{}-{}-steps", setting.course == CifarNetCourse::swift ? "swift-" : "",
                                 ternary ? "ternary" : "float", pair.batch_size, setting.iterations),
             .program = networks::cifarnet().program(),
             .flags = setting.flags(),
             .places = setting.data.places(),
             .steps = setting.iterations};
  run.columns = {{"batch", std::to_string(pair.batch_size)},
                 {"gradients", ternary ? "TernGrad" : "float"},
                 {"workers", ternary ? std::to_string(pair.workers) : "1"}};
  if (ternary) {
    const auto flags = ternary_flags(pair.workers);
    run.flags.insert(run.flags.end(), flags.begin(), flags.end());
  }
  ComparisonRow row = {.run = run,
                       .label = ternary ? "TernGrad" : "float",
                       .published = ternary ? pair.ternary : pair.with_floats,
                       .published_steps = pair.steps};
  if (setting.course == CifarNetCourse::swift && &pair != kPairs) row.most_seeds = 1;
  return row;
}

/// The quick form has only the first pair: with as many images, the second takes as long and learns less.
bool is_wanted(const Pair& pair, const ExperimentOptions& options) {
  if (options.workers.empty()) return !options.quick || &pair == kPairs;
  return std::ranges::find(options.workers, pair.workers) != options.workers.end();
}

/// TernGrad's Table 1 (Wen et al., 2017, section 4.1). All rows train on the same number of images. The float rows are
/// one process with the whole batch: CifarNet has no batch norm, so the mean of the gradients of equal shares is the
/// batch's gradient.
std::unique_ptr<Experiment> make_terngrad_table1(const ExperimentOptions& options) {
  CifarNetSetting setting = {.data = choose_data("terngrad-table1", options, {"cifar10", "shapes"})};
  int64_t longest = kPairs[0].steps;
  if (options.quick) {
    setting.course = CifarNetCourse::quick;
    longest = 3600;
  }
  if (options.swift) {
    setting.course = CifarNetCourse::swift;
    longest = networks::cifarnet().defaults(kSwift).iterations.value();
  }
  if (options.iterations) longest = *options.iterations;
  for (const int64_t workers : options.workers)
    check_input(workers == 2 || workers == 16, "--workers: found ", workers, ", expected 2, 16 or both");
  std::vector<ComparisonGroup> groups;
  for (const Pair& pair : kPairs) {
    if (!is_wanted(pair, options)) continue;
    setting.batch_size = pair.batch_size;
    setting.iterations = std::max<int64_t>(1, longest * kPairs[0].batch_size / pair.batch_size);
    groups.push_back({.title = fmt::format("batch {}, {} workers", pair.batch_size, pair.workers),
                      .rows = {make_row(setting, pair, false), make_row(setting, pair, true)}});
  }
  const std::string text =
      setting.sentence() +
      " TernGrad is `--codec ternary` (clipping at 2.5 σ, layer by layer, all layers) with `--exchange server`. Float "
      "is one process with the whole batch. If workers shared the batch, only the order of float sums would change.";
  return std::make_unique<ComparisonTable>(ComparisonTable::Content{.heading = "TernGrad, Table 1: CifarNet",
                                                                    .setting = text,
                                                                    .seeds = options.seeds.value_or(1),
                                                                    .papers_data = setting.data.name == "cifar10",
                                                                    .groups = groups});
}

}  // namespace

ExperimentEntry terngrad_table1() {
  return {.name = "terngrad-table1",
          .title = "TernGrad, Table 1: CifarNet on CIFAR-10, 2 workers and 16",
          .data = "CIFAR-10: ./dev data cifar10",
          .time = "about 24 hours on 2 cores; with --quick 10 minutes, with --swift hours",
          .device = kLongOnGpu,
          .takes_swift = true,
          .make = make_terngrad_table1};
}

}  // namespace tern::reproduce
