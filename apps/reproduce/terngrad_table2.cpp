#include <fmt/format.h>

#include <algorithm>

#include "tern/apps/reproduce/comparison_table.h"
#include "tern/apps/reproduce/engine/data_choice.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/core/error.h"
#include "tern/networks/alexnet.h"

namespace tern::reproduce {
namespace {

/// A codec for the gradients, with the dropout ratio that the paper uses with it.
struct CodecWay {
  const char *name, *title, *codec, *dropout;
};
constexpr CodecWay kFloatWay = {"float", "float", "none", "0.5"};
constexpr CodecWay kTernGradWay = {"ternary", "TernGrad", "ternary", "0.2"};
constexpr CodecWay kUnclippedWay = {"noclip", "TernGrad-noclip", "ternary:clip=0", "0.2"};

struct Published {
  CodecWay way;
  double accuracy;  ///< top-1, in percent
};
/// Rows of TernGrad's Table 2 with the same batch size.
struct WayGroup {
  int64_t workers, batch_size, steps;
  const char* lr;
  std::vector<Published> rows;
};

const std::vector<WayGroup>& groups() {
  static const std::vector<WayGroup> all = {
      {2, 256, 370'000, "0.01", {{kFloatWay, 57.33}, {kTernGradWay, 57.61}, {kUnclippedWay, 54.63}}},
      {4, 512, 185'000, "0.02", {{kFloatWay, 57.32}, {kTernGradWay, 57.28}}},
      {8, 1024, 92'500, "0.04", {{kFloatWay, 56.62}, {kTernGradWay, 57.54}}}};
  return all;
}

/// The differences between the paper's form and the short form.
struct Form {
  DataChoice data;
  int64_t steps, batch_size;
  bool brief;
};

ComparisonRow make_row(const Form& form, const WayGroup& group, const Published& published) {
  const CodecWay& way = published.way;
  const TrainSettings& paper = networks::alexnet().recipe.defaults;
  Run run = {
      .name = fmt::format("{}-batch-{}-{}-workers-{}-steps", way.name, form.batch_size, group.workers, form.steps),
      .program = networks::alexnet().program(),
      .flags = {"--data",         form.data.name,
                "--batch-size",   std::to_string(form.batch_size),
                "--iterations",   std::to_string(form.steps),
                "--lr",           group.lr,
                "--lr-schedule",  to_string(paper.lr_schedule),
                "--lr-steps",     fmt::format("{}", fmt::join(paper.lr_steps, ",")),
                "--weight-decay", fmt::format("{}", paper.weight_decay),
                "--dropout",      way.dropout,
                "--ema-decay",    "0.9999",
                "--workers",      std::to_string(group.workers),
                "--transport",    "inproc"},
      .places = form.data.places(),
      .steps = form.steps};
  const auto add = [&run](std::initializer_list<std::string> words) { run.flags.insert(run.flags.end(), words); };
  if (form.brief) add({"--norm-momentum", "0.1"});
  if (way.codec != std::string("none"))
    add({"--codec", way.codec, "--exchange", "server", "--keep-float", "fc8.*", "--min-compress", "9217"});
  run.columns = {{"base LR", group.lr},
                 {"batch", std::to_string(form.batch_size)},
                 {"workers", std::to_string(group.workers)},
                 {"gradients", way.title},
                 {"dropout", way.dropout}};
  return {.run = run, .label = way.title, .published = published.accuracy, .published_steps = group.steps};
}

std::string setting(const Form& form) {
  std::string text = fmt::format(
      "AlexNet in two towers, with batch norm after its convolutions, on {}. Inputs are 224×224, mirrored at random. "
      "Shapes are drawn in this size. Images of a folder are resized to 256×256 and cropped at random. Momentum is 0.9 "
      "and weight decay 0.0005; the learning rate falls to a tenth after 27, 54 and 81 % of the steps (section 4.2). "
      "Each worker has its own batch statistics. TernGrad clips at 2.5 σ, TernGrad-noclip does not. Both leave the "
      "last layer, and tensors of fewer than 9,217 elements, in float, as the authors' code does.",
      form.data.name == "shapes224" ? "generated shapes, **not the paper's ImageNet**"
                                    : "the images of a folder (the paper's are ImageNet's)");
  if (form.brief)
    text +=
        " This is a short form with small batches. Its running statistics have a decay of 0.9, because the paper's "
        "0.9997 needs thousands of steps. On two cores it has too few steps for AlexNet to learn. It shows that all "
        "rows run, and what they send.";
  return text;
}

/// TernGrad's Table 2 (Wen et al., 2017, section 4.2): top-1 accuracy with float, TernGrad, and TernGrad without
/// clipping.
std::unique_ptr<Experiment> make_terngrad_table2(const ExperimentOptions& options) {
  Form form = {.data = choose_data("terngrad-table2", options, {"shapes224", "images"}),
               .steps = 0,
               .batch_size = 0,
               .brief = options.quick || options.iterations};
  for (const int64_t workers : options.workers)
    check_input(std::ranges::find(groups(), workers, &WayGroup::workers) != groups().end(), "--workers: found ",
                workers, ", expected some of 2, 4 and 8");
  std::vector<int64_t> wanted = options.workers;
  if (wanted.empty()) wanted = options.quick ? std::vector<int64_t>{2} : std::vector<int64_t>{2, 4, 8};
  std::vector<ComparisonGroup> tables;
  for (const WayGroup& group : groups()) {
    if (std::ranges::find(wanted, group.workers) == wanted.end()) continue;
    form.batch_size = options.quick ? 16 * group.workers : group.batch_size;
    form.steps = options.quick ? 160 : group.steps;
    if (options.iterations) form.steps = std::max<int64_t>(1, *options.iterations * 2 / group.workers);
    tables.push_back({.title = fmt::format("batch {}, {} workers", form.batch_size, group.workers), .rows = {}});
    for (const Published& published : group.rows) tables.back().rows.push_back(make_row(form, group, published));
  }
  return std::make_unique<ComparisonTable>(ComparisonTable::Content{.heading = "TernGrad, Table 2: AlexNet",
                                                                    .setting = setting(form),
                                                                    .seeds = options.seeds.value_or(1),
                                                                    .papers_data = false,
                                                                    .groups = tables});
}

}  // namespace

ExperimentEntry terngrad_table2() {
  return {.name = "terngrad-table2",
          .title = "TernGrad, Table 2: AlexNet, float against TernGrad with and without clipping",
          .data =
              "none: shapes of 224×224 are drawn; or --data images --data-dir DIR (CIFAR-10's 32×32 are too small). "
              "The paper's is ImageNet",
          .time = "weeks on 2 cores; with --quick 15 minutes, which is not long enough to learn",
          .device = kLongOnGpu,
          .make = make_terngrad_table2};
}

}  // namespace tern::reproduce
