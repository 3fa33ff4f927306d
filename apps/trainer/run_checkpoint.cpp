#include "tern/apps/trainer/run_checkpoint.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "tern/apps/trainer/flag_table.h"
#include "tern/apps/trainer/flag_value.h"
#include "tern/core/error.h"
#include "tern/optim/checkpoint.h"

namespace tern {
namespace {

constexpr const char* kSeconds = "seconds";
constexpr const char* kAveragePrefix = "average.";

void check_same_run(const Checkpoint& checkpoint, const Metadata& identity) {
  for (const auto& [name, value] : identity) {
    const auto noted = checkpoint.notes.find(name);
    const std::string before = noted == checkpoint.notes.end() ? "" : noted->second;
    check_input(before == value, "--resume: ", checkpoint.file.string(), ": ", name, " was ", before, " and is ", value,
                " now; start from its parameters with --init, or in another folder");
  }
}

}  // namespace

Metadata run_identity(const RunStart& run) {
  Metadata identity = {{"application", run.application}, {"training-images", std::to_string(run.training_images)}};
  visit_flags(run.settings, [&](const Flag& flag, const auto& field) {
    const bool acts = reason_without_effect(flag.name, run.settings).empty();
    if (flag.shapes_result && acts) identity[std::string("--") + flag.name] = write_value(field);
  });
  const std::string& schedule = run.settings.lr_schedule;
  if (schedule == "poly" || schedule == "cosine") identity["number of steps"] = std::to_string(run.total_steps);
  for (const auto& [flag, word] : run.settings.choices) identity["--" + flag] = word;
  for (const auto& [flag, count] : run.settings.counts) identity["--" + flag] = std::to_string(count);
  return identity;
}

void check_no_run(const std::string& folder) {
  const auto latest = latest_checkpoint(folder);
  check_input(!latest, "--checkpoint: ", folder, " holds a run already (", latest ? latest->filename().string() : "",
              "): go on with --resume, or name another folder");
}

void write_run(const std::string& folder, const RunStart& run, const RunPlace& place, const RunParts& parts) {
  Checkpoint checkpoint{.step = place.steps,
                        .epoch = place.steps / run.steps_per_epoch,
                        .position = place.steps % run.steps_per_epoch * run.settings.batch_size,
                        .seed = static_cast<uint64_t>(run.settings.seed),
                        .notes = run_identity(run),
                        .sections = {}};
  checkpoint.notes[kSeconds] = fmt::format("{}", place.seconds);
  checkpoint.sections.emplace_back("model", parts.model.state());
  checkpoint.sections.emplace_back("optimizer", parts.optimizer.state());
  if (parts.average) checkpoint.sections.emplace_back("average", parts.average->state());
  save_checkpoint(folder, checkpoint);
}

RunPlace read_run(const std::string& folder, const RunStart& run, const RunParts& parts) {
  const Checkpoint checkpoint = load_checkpoint(folder);
  check_same_run(checkpoint, run_identity(run));
  check_input(checkpoint.step <= run.total_steps, "--resume: ", checkpoint.file.string(), " is at step ",
              checkpoint.step, ", this run ends at step ", run.total_steps);
  checkpoint.restore("model", parts.model);
  checkpoint.restore("optimizer", parts.optimizer);
  if (parts.average) checkpoint.restore("average", *parts.average);
  return {.steps = checkpoint.step, .seconds = std::strtod(checkpoint.notes.at(kSeconds).c_str(), nullptr)};
}

void load_evaluated_model(const std::string& folder, Module& model) {
  const Checkpoint checkpoint = load_checkpoint(folder);
  checkpoint.restore("model", model);
  for (const auto& [section, state] : checkpoint.sections) {
    if (section != "average") continue;
    for (const auto& [name, parameter] : model.parameters())
      parameter->value().copy_from(state.at(kAveragePrefix + name));
  }
}

}  // namespace tern
