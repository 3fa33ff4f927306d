#include <fmt/format.h>

#include "tern/apps/reproduce/codec_comparison.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/networks/lenet.h"

namespace tern::reproduce {
namespace {

std::unique_ptr<Experiment> make_qsgd_1bit(const ExperimentOptions& options) {
  const DataChoice data = choose_data("qsgd-1bit", options, {"mnist", "digits"});
  constexpr int64_t kBatch = 64;
  return std::make_unique<CodecComparison>(CodecComparisonPlan{
      .title = "QSGD against 1BitSGD: LeNet",
      .setting = fmt::format(
          "LeNet on {}{}, total batch {}, momentum SGD, polynomial learning rate from 0.01, weight decay 0.0005. Every "
          "tensor is coded. 1BitSGD adds what one message leaves out to the next message (error feedback). QSGD does "
          "not. The comparison is in the full version of the paper. The NIPS version says only that \"QSGD outperforms "
          "or matches the performance and final accuracy of 1BitSGD\" (section 5), and prints no number.",
          data.name, not_the_papers(data, "mnist"), kBatch),
      .program = networks::lenet().program(),
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

}  // namespace

ExperimentEntry qsgd_1bit() {
  return {.name = "qsgd-1bit",
          .title = "QSGD against 1BitSGD (full version of the paper)",
          .data = "MNIST: ./dev data mnist",
          .time = "about 25 minutes on 2 cores; with --quick 5 minutes",
          .device = kAnyDevice,
          .make = make_qsgd_1bit};
}

}  // namespace tern::reproduce
