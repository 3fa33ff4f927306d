#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tern/apps/reproduce/codec_comparison.h"
#include "tern/apps/reproduce/comparison_table.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/networks/resnet.h"

namespace tern::reproduce {
namespace {

constexpr int64_t kEpoch = 50'000 / 128;  ///< steps

/// A row with ResNet-20 on CIFAR-10, by He et al.'s course or by the recipe swift. One worker is one process.
ComparisonRow make_course_row(const DataChoice& data, bool swift, int64_t steps, int64_t workers,
                              const ComparedCodec& codec) {
  Run run = {.name = fmt::format("{}-{}-{}-workers-{}-steps", swift ? "swift" : "he-et-al", codec.name, workers, steps),
             .program = networks::resnet().program(),
             .flags = {},
             .places = data.places(),
             .steps = steps,
             .columns = {{"course", swift ? "swift" : "He et al.'s"},
                         {"workers", std::to_string(workers)},
                         {"gradients", codec.label}}};
  const auto add = [&run](const std::vector<std::string>& words) {
    run.flags.insert(run.flags.end(), words.begin(), words.end());
  };
  if (swift) add({"--recipe", kSwift});
  add({"--data", data.name, "--iterations", std::to_string(steps)});
  if (workers > 1) {
    add({"--workers", std::to_string(workers), "--transport", "inproc"});
    if (std::string_view(codec.spec) != kFloat.spec) add(code_flags(codec));
  }
  return {.run = run, .label = codec.label, .published = codec.paper, .published_steps = {}};
}

/// ResNet-20 with several sizes of codes, and by He et al.'s course.
std::unique_ptr<Experiment> make_swift_table(const ExperimentOptions& options) {
  constexpr int64_t kHeSteps = 64'000;
  check_input(options.workers.empty(), "--workers: --swift has its own, 2 and 4");
  const DataChoice data = choose_data("qsgd-table1", options, {"cifar10", "shapes"});
  const int64_t whole = networks::resnet().defaults(kSwift).epochs.value() * kEpoch;
  const int64_t steps = options.iterations.value_or(whole);
  const auto swift = [&](int64_t workers, const ComparedCodec& codec, bool repeats) {
    ComparisonRow row = make_course_row(data, true, steps, workers, codec);
    if (!repeats) row.most_seeds = 1;
    return row;
  };
  ComparisonRow original =
      make_course_row(data, false, std::max<int64_t>(1, kHeSteps * steps / whole), 1, scored(kFloat, 91.25));
  original.published_steps = kHeSteps;
  original.most_seeds = 1;
  return std::make_unique<ComparisonTable>(ComparisonTable::Content{
      .heading = "QSGD, Table 1: ResNet-20",
      .setting = fmt::format(
          "ResNet-20 on {}{}, total batch 128, `--recipe swift`: He et al.'s setting with {} steps, a rate that falls "
          "to 0 along a cosine, and weight decay 0.0005. Codes have buckets scaled by their maximum. Matrices of fewer "
          "than 10,000 elements travel as floats. The last row is He et al.'s own course in one process; their number "
          "is beside it. The paper has ResNet-110 with 8 workers: 93.86 % with floats, 94.19 % with 4 bits.",
          data.name, not_the_papers(data, "cifar10"), steps),
      .seeds = options.seeds.value_or(1),
      .papers_data = data.name == "cifar10",
      .groups = {
          {.title = "2 workers",
           .rows = {swift(2, kFloat, true), swift(2, kBits4, true), swift(2, kBits2, false), swift(2, kBits8, false)}},
          {.title = "4 workers", .rows = {swift(4, kFloat, false), swift(4, kBits4, false)}},
          {.title = "He et al.'s course", .rows = {original}}}});
}

std::unique_ptr<Experiment> make_qsgd_table1(const ExperimentOptions& options) {
  if (options.swift) return make_swift_table(options);
  const DataChoice data = choose_data("qsgd-table1", options, {"cifar10", "shapes"});
  constexpr int64_t kBatch = 128;
  const std::string depth = options.quick ? "20" : "110";
  std::vector<std::string> flags = {"--depth", depth, "--batch-size", std::to_string(kBatch)};
  if (options.quick) flags.insert(flags.end(), {"--lr-schedule", "cosine"});
  std::string setting = fmt::format(
      "ResNet-{} on {}{}, total batch {}, with the setting of He et al.: their crop and mirroring, momentum 0.9, "
      "weight decay 0.0001. The learning rate is 0.1{}. Codes have 4 bits, and buckets of 512 scaled by their maximum. "
      "Matrices of fewer than 10,000 elements travel as floats. These are a quarter of this network; the paper speaks "
      "of less than 1 %.",
      depth, data.name, not_the_papers(data, "cifar10"), kBatch,
      options.quick ? " and falls along a cosine"
                    : " after 400 steps of 0.01. It falls to a tenth after a half of the steps, and again after three "
                      "quarters");
  if (options.quick)
    setting +=
        " **This is the short form: another network, and a small part of the paper's 160 epochs. The paper's numbers "
        "are ResNet-110's.**";
  setting +=
      "\n\nThe other rows of Table 1: AlexNet, ResNet-50 and ResNet-152 on ImageNet are qsgd-table1-imagenet, the LSTM "
      "on AN4 is qsgd-table1-lstm. Of BN-Inception and VGG19 the paper has only the speeds: qsgd-table1-speed. Compare "
      "the table's speed-ups with qsgd-fig2.";
  return std::make_unique<CodecComparison>(CodecComparisonPlan{
      .title = fmt::format("QSGD, Table 1: ResNet-{} on {}", depth, data.name),
      .setting = setting,
      .program = networks::resnet().program(),
      .data = data,
      .flags = flags,
      .codecs = {scored(kFloat, 93.86), scored(kBits4, 94.19)},
      .min_compress = kSmallMatrix,
      .workers = choose_workers(options, options.quick ? 2 : 8, kBatch),
      .iterations =
          options.iterations.value_or(options.quick ? 1950 : networks::resnet().recipe.defaults.iterations.value()),
      .seeds = options.seeds.value_or(1),
      .checkpoint_every = 200});
}

}  // namespace

ExperimentEntry qsgd_table1() {
  return {.name = "qsgd-table1",
          .title = "QSGD, Table 1: ResNet-110 on CIFAR-10, float against 4 bits, 8 workers",
          .data = "CIFAR-10: ./dev data cifar10",
          .time = "days on 2 cores; with --quick 12 minutes, ResNet-20; with --swift hours, ResNet-20",
          .device = kLongOnGpu,
          .takes_swift = true,
          .make = make_qsgd_table1};
}

}  // namespace tern::reproduce
