#include <fmt/format.h>

#include <algorithm>

#include "tern/apps/reproduce/comparison_table.h"
#include "tern/apps/reproduce/engine/data_choice.h"
#include "tern/apps/reproduce/experiments.h"
#include "tern/core/error.h"
#include "tern/networks/googlenet.h"

namespace tern::reproduce {
namespace {

/// A row of the paper's table.
struct GoogLeNetRow {
  bool ternary;
  const char *weight_decay, *dropout;
  double accuracy;  ///< top-5, in percent
};
/// Rows with the same batch size.
struct GoogLeNetRows {
  int64_t workers, batch_size, steps;
  const char* lr;
  GoogLeNetRow floats, ternary;
};
constexpr GoogLeNetRows kGoogLeNetRows[] = {
    {2, 128, 600'000, "0.04", {false, "4e-05", "0.2", 88.30}, {true, "1e-05", "0.08", 86.77}},
    {4, 256, 300'000, "0.08", {false, "4e-05", "0.2", 87.82}, {true, "1e-05", "0.08", 85.96}},
    {8, 512, 300'000, "0.1", {false, "4e-05", "0.2", 89.00}, {true, "2e-05", "0.08", 86.47}}};

/// The differences between the paper's form and the short form.
struct GoogLeNetForm {
  DataChoice data;
  int64_t steps, batch_size;
  bool brief;
};

ComparisonRow make_googlenet_row(const GoogLeNetForm& form, const GoogLeNetRows& group, const GoogLeNetRow& published) {
  const char* const title = published.ternary ? "TernGrad" : "float";
  Run run = {.name = fmt::format("{}-batch-{}-{}-workers-{}-steps", published.ternary ? "ternary" : "float",
                                 form.batch_size, group.workers, form.steps),
             .program = networks::googlenet().program(),
             .flags = {"--data",         form.data.name,
                       "--batch-size",   std::to_string(form.batch_size),
                       "--iterations",   std::to_string(form.steps),
                       "--lr",           group.lr,
                       "--lr-schedule",  "poly",
                       "--weight-decay", published.weight_decay,
                       "--dropout",      published.dropout,
                       "--ema-decay",    "0.9999",
                       "--top",          "5",
                       "--workers",      std::to_string(group.workers),
                       "--transport",    "inproc"},
             .places = form.data.places(),
             .steps = form.steps};
  const auto add = [&run](std::initializer_list<std::string> words) { run.flags.insert(run.flags.end(), words); };
  if (form.brief) add({"--norm-momentum", "0.1"});
  if (published.ternary)
    add({"--codec", "ternary", "--exchange", "server", "--keep-float", "fc.*", "--min-compress", "9217"});
  run.columns = {
      {"base LR", group.lr}, {"batch", std::to_string(form.batch_size)}, {"workers", std::to_string(group.workers)},
      {"gradients", title},  {"weight decay", published.weight_decay},   {"dropout", published.dropout}};
  return {.run = run, .label = title, .published = published.accuracy, .published_steps = group.steps};
}

std::string googlenet_setting(const GoogLeNetForm& form) {
  std::string text = fmt::format(
      "GoogLeNet with batch norm and without auxiliary classifiers, on {}. Inputs are 224×224: random areas of 8 to "
      "100 % of the picture, mirrored, with random brightness, saturation and contrast; for the test, the middle of "
      "the picture. Momentum is 0.9; the learning rate falls along a polynomial of power 0.5 (section 4.2). Each "
      "worker has its own batch statistics. TernGrad clips at 2.5 σ. It leaves the last layer, and tensors of fewer "
      "than 9,217 elements, in float, as the authors' code does.",
      form.data.name == "shapes224" ? "generated shapes, **not the paper's ImageNet**"
                                    : "the images of a folder (the paper's are ImageNet's)");
  if (form.brief)
    text +=
        " This is a short form. Its running statistics have a decay of 0.9, because the paper's 0.9997 needs thousands "
        "of steps. It has too few steps to learn. It shows that all rows run, and what they send.";
  return text;
}

/// TernGrad's Table 3 (Wen et al., 2017, section 4.2): top-5 accuracy with float and TernGrad.
std::unique_ptr<Experiment> make_terngrad_table3(const ExperimentOptions& options) {
  GoogLeNetForm form = {.data = choose_data("terngrad-table3", options, {"images", "shapes224"}),
                        .steps = 0,
                        .batch_size = 0,
                        .brief = options.quick || options.iterations};
  for (const int64_t workers : options.workers)
    check_input(std::ranges::find(kGoogLeNetRows, workers, &GoogLeNetRows::workers) != std::end(kGoogLeNetRows),
                "--workers: found ", workers, ", expected some of 2, 4 and 8");
  std::vector<int64_t> wanted = options.workers;
  if (wanted.empty()) wanted = options.quick ? std::vector<int64_t>{2} : std::vector<int64_t>{2, 4, 8};
  std::vector<ComparisonGroup> tables;
  for (const GoogLeNetRows& group : kGoogLeNetRows) {
    if (std::ranges::find(wanted, group.workers) == wanted.end()) continue;
    form.batch_size = options.quick ? 8 * group.workers : group.batch_size;
    form.steps = options.iterations.value_or(options.quick ? 40 : group.steps);
    tables.push_back(
        {.title = fmt::format("batch {}, {} workers", form.batch_size, group.workers),
         .rows = {make_googlenet_row(form, group, group.floats), make_googlenet_row(form, group, group.ternary)}});
  }
  return std::make_unique<ComparisonTable>(ComparisonTable::Content{.heading = "TernGrad, Table 3: GoogLeNet",
                                                                    .setting = googlenet_setting(form),
                                                                    .seeds = options.seeds.value_or(1),
                                                                    .score = "top-5 accuracy",
                                                                    .papers_data = false,
                                                                    .groups = tables});
}

}  // namespace

ExperimentEntry terngrad_table3() {
  return {.name = "terngrad-table3",
          .title = "TernGrad, Table 3: GoogLeNet, float against TernGrad",
          .data =
              "ImageNet, or other pictures of more than 5 classes: --data images --data-dir DIR; or, to try it, "
              "shapes that are drawn: --data shapes224",
          .time = "months on 2 cores; with --quick 40 steps of 16 pictures, which are not enough to learn",
          .device = kLongOnGpu,
          .make = make_terngrad_table3};
}

}  // namespace tern::reproduce
