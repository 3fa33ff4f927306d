#include "tern/apps/reproduce/imagenet_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "tern/apps/reproduce/comparison_table.h"
#include "tern/core/error.h"

namespace tern::reproduce {
namespace {

/// The differences between the paper's form and a short form.
struct ImageNetForm {
  DataChoice data;
  int64_t steps, batch_size;
  bool brief;  ///< fewer steps or smaller batches than the paper
};

ComparisonRow make_imagenet_row(const ImageNetTable& table, const ImageNetForm& form, const ImageNetRows& group,
                                const ImageNetRow& row) {
  Run run = {
      .name = fmt::format("{}-batch-{}-{}-workers-{}-steps", row.name, form.batch_size, group.workers, form.steps),
      .program = table.program,
      .flags = {"--data", form.data.name, "--batch-size", std::to_string(form.batch_size)},
      .places = form.data.places(),
      .steps = form.steps};
  const auto add = [&run](std::initializer_list<std::string> words) { run.flags.insert(run.flags.end(), words); };
  add({"--iterations", std::to_string(form.steps), "--lr", group.lr});
  run.flags.insert(run.flags.end(), table.flags.begin(), table.flags.end());
  add({"--weight-decay", row.weight_decay, "--dropout", row.dropout, "--ema-decay", "0.9999"});
  add({"--workers", std::to_string(group.workers), "--transport", "inproc"});
  if (form.brief) add({"--norm-momentum", "0.1"});
  if (row.codec != std::string("none"))
    add({"--codec", row.codec, "--exchange", "server", "--keep-float", table.last_layer, "--min-compress", "9217"});
  run.columns = {
      {"base LR", group.lr},    {"batch", std::to_string(form.batch_size)}, {"workers", std::to_string(group.workers)},
      {"gradients", row.title}, {"weight decay", row.weight_decay},         {"dropout", row.dropout}};
  return {.run = run, .label = row.title, .published = row.accuracy, .published_steps = group.steps};
}

std::vector<int64_t> choose_groups(const ImageNetTable& table, const ExperimentOptions& options) {
  std::vector<int64_t> all;
  for (const ImageNetRows& group : table.groups) all.push_back(group.workers);
  for (const int64_t workers : options.workers)
    check_input(std::ranges::find(all, workers) != all.end(), "--workers: found ", workers, ", expected some of ",
                fmt::format("{}", fmt::join(all, ", ")));
  if (!options.workers.empty()) return options.workers;
  return options.quick ? std::vector{all.front()} : all;
}

}  // namespace

std::unique_ptr<Experiment> make_imagenet_table(const ImageNetTable& table, const ExperimentOptions& options) {
  ImageNetForm form = {
      .data = choose_data(table.name, options, table.data), .steps = 0, .batch_size = 0, .brief = options.quick};
  const std::vector<int64_t> wanted = choose_groups(table, options);
  std::vector<ComparisonGroup> groups;
  for (const ImageNetRows& group : table.groups) {
    if (std::ranges::find(wanted, group.workers) == wanted.end()) continue;
    form.batch_size = options.quick ? table.quick_images * group.workers : group.batch_size;
    form.steps = options.quick ? table.quick_steps : group.steps;
    if (options.iterations)
      form.steps = std::max<int64_t>(1, *options.iterations * group.steps / table.groups.front().steps);
    form.brief = options.quick || form.steps < group.steps;  // all groups have the same share of their steps
    groups.push_back({.title = fmt::format("batch {}, {} workers", form.batch_size, group.workers), .rows = {}});
    for (const ImageNetRow& row : group.rows) groups.back().rows.push_back(make_imagenet_row(table, form, group, row));
  }
  std::string setting =
      fmt::format(fmt::runtime(table.setting), form.data.name == "shapes224"
                                                   ? "generated shapes, **not the paper's ImageNet**"
                                                   : "the images of a folder (the paper's are ImageNet's)");
  if (form.brief) setting += table.brief;
  return std::make_unique<ComparisonTable>(ComparisonTable::Content{.heading = table.heading,
                                                                    .setting = setting,
                                                                    .seeds = options.seeds.value_or(1),
                                                                    .score = table.score,
                                                                    .papers_data = false,
                                                                    .groups = groups});
}

}  // namespace tern::reproduce
