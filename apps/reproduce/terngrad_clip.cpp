#include <fmt/format.h>

#include <algorithm>

#include "tern/apps/reproduce/cifarnet_setting.h"
#include "tern/apps/reproduce/codec_comparison.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/networks/cifarnet.h"
#include "tern/networks/lenet.h"

namespace tern::reproduce {
namespace {

/// TernGrad with shared scalers, and the two ways to clip before them.
const std::vector<ComparedCodec> kClipModes = {
    kFloat,
    {.name = "paper", .label = "clipped at the shared scaler", .spec = "ternary:share=on,clip-mode=paper"},
    {.name = "own", .label = "clipped by each worker", .spec = "ternary:share=on,clip-mode=own"}};

constexpr const char* kModes =
    " Workers share their scalers (eq. 4): S is the largest of all workers' 2.5 σ. With `clip-mode=paper` a gradient "
    "is clipped at S. With `clip-mode=own` each worker clips at its own 2.5 σ first. The paper does not say which of "
    "the two it ran, and prints no number that tells them apart.";

std::unique_ptr<Experiment> make_lenet(const ExperimentOptions& options) {
  const DataChoice data = choose_data("terngrad-clip-lenet", options, {"mnist", "digits"});
  constexpr int64_t kBatch = 64;
  return std::make_unique<CodecComparison>(CodecComparisonPlan{
      .title = "TernGrad's clipping with shared scalers: LeNet",
      .setting = fmt::format("LeNet of the TernGrad paper on {}{}, total batch {}, momentum SGD, as in Figure 3 (a).{}",
                             data.name, not_the_papers(data, "mnist"), kBatch, kModes),
      .program = networks::lenet().program(),
      .data = data,
      .flags = {"--variant", "terngrad", "--batch-size", std::to_string(kBatch), "--optimizer", "momentum",
                "--momentum", "0.9", "--lr", "0.01", "--lr-schedule", "poly", "--lr-power", "0.5", "--weight-decay",
                "0.0005", "--ema-decay", "0.9999"},
      .codecs = kClipModes,
      .workers = choose_workers(options, 2, kBatch),
      .iterations = options.iterations.value_or(options.quick ? 1000 : 10'000),
      .seeds = options.seeds.value_or(1)});
}

std::unique_ptr<Experiment> make_cifarnet(const ExperimentOptions& options) {
  const CifarNetSetting setting = {.data = choose_data("terngrad-clip-cifarnet", options, {"cifar10", "shapes"}),
                                   .iterations = options.iterations.value_or(options.quick ? 400 : 3600),
                                   .course = CifarNetCourse::quick};
  std::vector<std::string> flags = setting.flags();
  for (const char* each : {"--data", "--iterations"}) {  // the plan adds them
    const auto at = std::ranges::find(flags, each);
    flags.erase(at, at + 2);
  }
  return std::make_unique<CodecComparison>(
      CodecComparisonPlan{.title = "TernGrad's clipping with shared scalers: CifarNet",
                          .setting = setting.sentence() + kModes,
                          .program = networks::cifarnet().program(),
                          .data = setting.data,
                          .flags = flags,
                          .codecs = kClipModes,
                          .workers = choose_workers(options, 2, setting.batch_size),
                          .iterations = setting.iterations,
                          .seeds = options.seeds.value_or(1)});
}

}  // namespace

ExperimentEntry terngrad_clip_lenet() {
  return {.name = "terngrad-clip-lenet",
          .title = "TernGrad, section 3.3: clipping by each worker or at the shared scaler, LeNet",
          .data = "MNIST: ./dev data mnist",
          .time = "a quarter of an hour on 2 cores; with --quick 2 minutes",
          .device = kAnyDevice,
          .make = make_lenet};
}

ExperimentEntry terngrad_clip_cifarnet() {
  return {.name = "terngrad-clip-cifarnet",
          .title = "TernGrad, section 3.3: clipping by each worker or at the shared scaler, CifarNet",
          .data = "CIFAR-10: ./dev data cifar10",
          .time = "tens of minutes on 2 cores; with --quick some minutes",
          .device = kAnyDevice,
          .make = make_cifarnet};
}

}  // namespace tern::reproduce
