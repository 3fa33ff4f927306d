#include <fmt/format.h>

#include "tern/apps/reproduce/codec_comparison.h"
#include "tern/apps/reproduce/papers.h"

namespace tern {
namespace {

/// Section 5 leaves matrices of fewer elements in float.
constexpr int64_t kSmallMatrix = 10'000;
constexpr ComparedCodec kFloat = {.name = "float", .label = "float", .spec = "none"};

const char* not_the_papers(const DataChoice& data, const char* papers) {
  return data.name == papers ? "" : ", **not on the paper's data**";
}

}  // namespace

std::unique_ptr<Experiment> make_qsgd_perceptron(const ExperimentOptions& options) {
  const DataChoice data = choose_data("qsgd-perceptron", options, {"mnist", "digits"});
  constexpr int64_t kBatch = 256, kPassOfMnist = 60'000 / kBatch;
  return std::make_unique<CodecComparison>(CodecComparisonPlan{
      .title = "QSGD, section 5: a two-layer perceptron",
      .setting = fmt::format(
          "A perceptron 784-512-10 on {}{}, total batch {}, momentum SGD, cosine learning rate from 0.05. Presets of "
          "section 5, scaled by the maximum as section 4 has it; matrices of fewer than 10,000 elements travel as "
          "floats, and count. Codes go from each worker to all others (allgather), b (n − 1) bits an element from each "
          "of n workers, where floats go round a ring, 64 (n − 1)/n: by 8 workers, 8 bit with its scales sends more "
          "than float. The paper trains it (\"Accuracy\") but prints neither its size nor an accuracy, only that 4 "
          "or 8 bits recover the float's.",
          data.name, not_the_papers(data, "mnist"), kBatch),
      .program = "train_mlp",
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

std::unique_ptr<Experiment> make_qsgd_1bit(const ExperimentOptions& options) {
  const DataChoice data = choose_data("qsgd-1bit", options, {"mnist", "digits"});
  constexpr int64_t kBatch = 64;
  return std::make_unique<CodecComparison>(CodecComparisonPlan{
      .title = "QSGD against 1BitSGD: LeNet",
      .setting = fmt::format(
          "LeNet on {}{}, total batch {}, momentum SGD, polynomial learning rate from 0.01, weight decay 0.0005; "
          "every tensor coded. 1BitSGD keeps what a message leaves out for the next (error feedback); QSGD keeps "
          "nothing. The comparison stands in the full version of the paper; here it says that \"QSGD outperforms or "
          "matches the performance and final accuracy of 1BitSGD\" (section 5), and prints no number.",
          data.name, not_the_papers(data, "mnist"), kBatch),
      .program = "train_lenet",
      .data = data,
      .flags = {"--batch-size", std::to_string(kBatch), "--optimizer", "momentum", "--momentum", "0.9", "--lr", "0.01",
                "--lr-schedule", "poly", "--weight-decay", "0.0005"},
      .codecs = {kFloat,
                 {.name = "1bitsgd", .label = "1BitSGD", .spec = "onebit"},
                 {.name = "qsgd-entropy", .label = "entropy", .spec = "qsgd:bits=4,bucket=512,code=entropy"},
                 {.name = "qsgd-2-bit", .label = "2 bit / 128", .spec = "qsgd:bits=2,bucket=128,norm=max"},
                 {.name = "qsgd-4-bit", .label = "4 bit / 512", .spec = "qsgd:bits=4,bucket=512,norm=max"}},
      .workers = choose_workers(options, 4, kBatch),
      .iterations = options.iterations.value_or(options.quick ? 1000 : 10'000),
      .seeds = options.seeds.value_or(1)});
}

std::unique_ptr<Experiment> make_qsgd_table1(const ExperimentOptions& options) {
  const DataChoice data = choose_data("qsgd-table1", options, {"cifar10", "shapes"});
  constexpr int64_t kBatch = 128;
  const std::string depth = options.quick ? "20" : "110";
  std::vector<std::string> flags = {"--depth", depth, "--batch-size", std::to_string(kBatch)};
  if (options.quick) flags.insert(flags.end(), {"--lr-schedule", "cosine"});
  std::string setting = fmt::format(
      "ResNet-{} on {}{}, total batch {}: He et al.'s crop, mirror, momentum 0.9, weight decay 0.0001 and rate of "
      "0.1{}. 4 bits, buckets of 512 scaled by their maximum; matrices of fewer than 10,000 elements travel as "
      "floats: a quarter of this network, where the paper speaks of less than 1 %.",
      depth, data.name, not_the_papers(data, "cifar10"), kBatch,
      options.quick ? ", on a cosine"
                    : " after 400 steps of 0.01, a tenth of it from a half and from three quarters of the steps on");
  if (options.quick)
    setting +=
        " **The short form: another network and a small part of the paper's 160 epochs. The paper's numbers are "
        "ResNet-110's.**";
  setting +=
      "\n\nOf Table 1's other rows tern runs none yet: AlexNet 59.50 → 60.05 %, ResNet-152 77.0 → 76.74 % and "
      "ResNet-50 74.68 → 74.76 % lack ImageNet; BN-Inception and VGG19, of which the paper has speeds alone, lack "
      "their networks; the LSTM on AN4, 81.13 → 81.15 %, lacks network and reader. Its speed-ups are qsgd-fig2's to "
      "compare.";
  return std::make_unique<CodecComparison>(CodecComparisonPlan{
      .title = fmt::format("QSGD, Table 1: ResNet-{} on {}", depth, data.name),
      .setting = setting,
      .program = "train_resnet",
      .data = data,
      .flags = flags,
      .codecs = {{.name = "float", .label = "float", .spec = "none", .paper = 93.86},
                 {.name = "4-bit", .label = "4 bit / 512", .spec = "qsgd:bits=4,bucket=512,norm=max", .paper = 94.19}},
      .min_compress = kSmallMatrix,
      .workers = choose_workers(options, options.quick ? 2 : 8, kBatch),
      .iterations = options.iterations.value_or(options.quick ? 1950 : 64'000),
      .seeds = options.seeds.value_or(1),
      .checkpoint_every = 200});
}

}  // namespace tern
