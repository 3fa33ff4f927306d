#include <fmt/format.h>

#include "tern/apps/reproduce/codec_comparison.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/networks/mlp.h"

namespace tern::reproduce {
namespace {

std::unique_ptr<Experiment> make_qsgd_perceptron(const ExperimentOptions& options) {
  const DataChoice data = choose_data("qsgd-perceptron", options, {"mnist", "digits"});
  constexpr int64_t kBatch = 256, kPassOfMnist = 60'000 / kBatch;
  return std::make_unique<CodecComparison>(CodecComparisonPlan{
      .title = "QSGD, section 5: a two-layer perceptron",
      .setting = fmt::format(
          "A perceptron 784-512-10 on {}{}, total batch {}, momentum SGD, cosine learning rate from 0.05. The presets "
          "are those of section 5, scaled by the maximum as in section 4. Matrices of fewer than 10,000 elements "
          "travel as floats, and the bits include them. Codes go from each worker to all others (allgather): each of n "
          "workers sends b (n − 1) bits an element. Floats go round a ring: 64 (n − 1)/n bits. So with 8 workers, 8 "
          "bits and their scales are more than floats. The paper trains this network (\"Accuracy\"), but prints "
          "neither its size nor an accuracy. It says only that 4 or 8 bits recover the float's.",
          data.name, not_the_papers(data, "mnist"), kBatch),
      .program = networks::mlp().program(),
      .data = data,
      .flags = {"--hidden", "512", "--norm", "none", "--batch-size", std::to_string(kBatch), "--optimizer", "momentum",
                "--momentum", "0.9", "--lr", "0.05", "--lr-schedule", "cosine"},
      .codecs = {kFloat,
                 {.name = "2-bit", .label = "2 bit / 128", .spec = "qsgd:bits=2,bucket=128,norm=max"},
                 {.name = "4-bit", .label = "4 bit / 512", .spec = "qsgd:bits=4,bucket=512,norm=max"},
                 {.name = "8-bit", .label = "8 bit / 512", .spec = "qsgd:bits=8,bucket=512,norm=max"}},
      .min_compress = kSmallMatrix,
      .workers = choose_workers(options, 8, kBatch),
      .iterations = options.iterations.value_or(kPassOfMnist * (options.quick ? 4 : 20)),
      .seeds = options.seeds.value_or(options.quick ? 1 : 3)});
}

}  // namespace

ExperimentEntry qsgd_perceptron() {
  return {.name = "qsgd-perceptron",
          .title = "QSGD, section 5: a two-layer perceptron on MNIST",
          .data = "MNIST: ./dev data mnist",
          .time = "about 15 minutes on 2 cores; with --quick 1 minute",
          .device = kAnyDevice,
          .make = make_qsgd_perceptron};
}

}  // namespace tern::reproduce
