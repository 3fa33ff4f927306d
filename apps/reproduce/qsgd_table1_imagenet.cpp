#include <fmt/format.h>

#include "tern/apps/reproduce/codec_comparison.h"
#include "tern/apps/reproduce/comparison_table.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/networks/alexnet.h"
#include "tern/networks/resnet.h"

namespace tern::reproduce {
namespace {

/// A network of the table: top-1 accuracies in percent with floats and with codes.
struct ImageNetEntry {
  const char* name;
  std::string program;
  std::vector<std::string> flags;
  int64_t steps;  ///< of 256 images
  ComparedCodec floats, codes;
};

/// The paper gives no schedule. AlexNet has its program's; residual networks have 90 epochs, and the rate falls to a
/// tenth after one third and after two thirds of them.
std::vector<ImageNetEntry> imagenet_networks() {
  constexpr int64_t kNinetyEpochs = 450'000;
  const auto resnet = [](const char* depth) {
    return std::vector<std::string>{"--depth", depth, "--stem", "imagenet", "--lr-steps", "0.3333,0.6667"};
  };
  return {{"AlexNet",
           networks::alexnet().program(),
           {},
           networks::alexnet().recipe.defaults.iterations.value(),
           scored(kFloat, 59.50),
           scored(kBits4, 60.05)},
          {"ResNet-50", networks::resnet().program(), resnet("50"), kNinetyEpochs, scored(kFloat, 74.68),
           scored(kBits4, 74.76)},
          {"ResNet-152", networks::resnet().program(), resnet("152"), kNinetyEpochs, scored(kFloat, 77.0),
           scored(kBits8, 76.74)}};
}

std::unique_ptr<Experiment> make_qsgd_imagenet(const ExperimentOptions& options) {
  const DataChoice data = choose_data("qsgd-table1-imagenet", options, {"images", "shapes224"});
  const int64_t batch = options.quick ? 8 : 256, workers = choose_workers(options, options.quick ? 2 : 8, batch);
  std::vector<ComparisonGroup> groups;
  for (const ImageNetEntry& network : imagenet_networks()) {
    const int64_t steps = options.iterations.value_or(options.quick ? 5 : network.steps);
    ComparisonGroup& group = groups.emplace_back(ComparisonGroup{.title = network.name, .rows = {}});
    for (const ComparedCodec* codec : {&network.floats, &network.codes}) {
      Run run = {
          .name = fmt::format("{}-{}-{}-workers-{}-steps", network.name, codec->name, workers, steps),
          .program = network.program,
          .flags = {"--data", data.name},
          .places = data.places(),
          .steps = steps,
          .columns = {{"network", network.name}, {"workers", std::to_string(workers)}, {"gradients", codec->label}}};
      const auto add = [&run](const std::vector<std::string>& words) {
        run.flags.insert(run.flags.end(), words.begin(), words.end());
      };
      add(network.flags);
      add({"--batch-size", std::to_string(batch), "--iterations", std::to_string(steps)});
      add({"--workers", std::to_string(workers), "--transport", "inproc"});
      if (codec == &network.codes) add(code_flags(*codec));
      group.rows.push_back(
          {.run = run, .label = codec->label, .published = codec->paper, .published_steps = network.steps});
    }
  }
  return std::make_unique<ComparisonTable>(ComparisonTable::Content{
      .heading = "QSGD, Table 1: AlexNet, ResNet-50 and ResNet-152",
      .setting = fmt::format(
          "{}, total batch {}. Buckets are scaled by their maximum, and matrices of fewer than 10,000 elements travel "
          "as floats. The paper gives neither batch nor schedule: AlexNet has its program's; residual networks have "
          "momentum 0.9, a rate of 0.1 that falls to a tenth after one third and after two thirds of the steps, and "
          "450,000 steps. The paper's rates at the start are 0.07 for AlexNet and 1 for ResNet-50 and ResNet-152. The "
          "figure has Figures 3a and 3c over steps.{}",
          data.name == "images" ? "The images of a folder (the paper's are ImageNet's)"
                                : "Generated shapes, **not the paper's ImageNet**",
          batch,
          options.quick ? " This is a short form, with too few steps to learn: it shows that all rows run." : ""),
      .seeds = options.seeds.value_or(1),
      .papers_data = false,
      .groups = groups});
}

}  // namespace

ExperimentEntry qsgd_table1_imagenet() {
  return {.name = "qsgd-table1-imagenet",
          .title = "QSGD, Table 1 and Figures 3a and 3c: AlexNet, ResNet-50 and ResNet-152, float against codes",
          .data =
              "ImageNet, or other pictures: --data images --data-dir DIR; or, to try it, shapes that are drawn: --data "
              "shapes224",
          .time = "years on 2 cores; with --quick 5 minutes, which are not enough to learn",
          .device = kLongOnGpu,
          .make = make_qsgd_imagenet};
}

}  // namespace tern::reproduce
