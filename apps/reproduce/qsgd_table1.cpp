#include <fmt/format.h>

#include "tern/apps/reproduce/codec_comparison.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/networks/resnet.h"

namespace tern::reproduce {
namespace {

std::unique_ptr<Experiment> make_qsgd_table1(const ExperimentOptions& options) {
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
      "\n\ntern does not run the other rows of Table 1 yet. AlexNet (59.50 → 60.05 %), ResNet-152 (77.0 → 76.74 %) and "
      "ResNet-50 (74.68 → 74.76 %) need ImageNet. Of BN-Inception and VGG19 the paper has only the speeds: "
      "qsgd-table1-speed. The LSTM on AN4 is qsgd-table1-lstm. Compare the table's "
      "speed-ups with qsgd-fig2.";
  return std::make_unique<CodecComparison>(CodecComparisonPlan{
      .title = fmt::format("QSGD, Table 1: ResNet-{} on {}", depth, data.name),
      .setting = setting,
      .program = networks::resnet().program(),
      .data = data,
      .flags = flags,
      .codecs = {{.name = "float", .label = "float", .spec = "none", .paper = 93.86},
                 {.name = "4-bit", .label = "4 bit / 512", .spec = "qsgd:bits=4,bucket=512,norm=max", .paper = 94.19}},
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
          .time = "days on 2 cores; with --quick 12 minutes, ResNet-20",
          .device = kLongOnGpu,
          .make = make_qsgd_table1};
}

}  // namespace tern::reproduce
