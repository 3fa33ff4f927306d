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
constexpr const char* kSentPayload = "bytes sent, payload";
constexpr const char* kSentOverhead = "bytes sent, overhead";
constexpr const char* kAveragePrefix = "average.";
// One more than of rank 0, whose newest may be missing: then the two before it are whole still.
constexpr size_t kKeptOfRank = 3;

/// A method whose state is taken from a checkpoint of so many steps.
struct MethodAfter {
  DistributedOptimizer& method;
  int64_t steps;
  void load_state(const StateDict& state) { method.load_state(state, steps); }
};

/// As a person would say it.
std::string shown(const std::string& value) { return value.empty() ? "not given" : value; }

void check_same_run(const Checkpoint& checkpoint, const Metadata& identity) {
  for (const auto& [name, value] : identity) {
    const auto noted = checkpoint.notes.find(name);
    const std::string before = noted == checkpoint.notes.end() ? "" : noted->second;
    check_input(before == value, "--resume: ", checkpoint.file.string(), ": ", name, " was ", shown(before), " and is ",
                shown(value), " now; start from its parameters with --init, or in another folder");
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

std::filesystem::path checkpoint_folder(const std::string& folder, int rank) {
  return rank == 0 ? std::filesystem::path(folder) : std::filesystem::path(folder) / fmt::format("rank-{}", rank);
}

void write_run(const std::string& folder, const RunStart& run, const RunPlace& place, const RunParts& parts,
               const std::function<void()>& wait_for_all) {
  Checkpoint checkpoint{.step = place.steps,
                        .epoch = place.steps / run.steps_per_epoch,
                        .position = place.steps % run.steps_per_epoch * run.images_per_step,
                        .seed = static_cast<uint64_t>(run.settings.seed),
                        .notes = run_identity(run),
                        .sections = {}};
  checkpoint.notes[kSeconds] = fmt::format("{}", place.seconds);
  checkpoint.notes[kSentPayload] = fmt::format("{}", place.sent_payload);
  checkpoint.notes[kSentOverhead] = fmt::format("{}", place.sent_overhead);
  if (parts.rank == 0 || !parts.method.replicated()) {
    checkpoint.sections.emplace_back("model", parts.model.state());
    checkpoint.sections.emplace_back("optimizer", parts.optimizer.state());
    if (parts.average) checkpoint.sections.emplace_back("average", parts.average->state());
  }
  if (run.settings.workers) checkpoint.sections.emplace_back("method", parts.method.state());
  if (parts.rank != 0) save_checkpoint(checkpoint_folder(folder, parts.rank), checkpoint, kKeptOfRank);
  wait_for_all();
  if (parts.rank == 0) save_checkpoint(folder, checkpoint);
}

RunPlace read_run(const std::string& folder, const RunStart& run, const RunParts& parts) {
  const Checkpoint first = load_checkpoint(folder);
  check_same_run(first, run_identity(run));
  check_input(first.step <= run.total_steps, "--resume: ", first.file.string(), " is at step ", first.step,
              ", this run ends at step ", run.total_steps);
  const Checkpoint own =
      parts.rank == 0 ? first : read_checkpoint(checkpoint_folder(folder, parts.rank) / first.file.filename());
  const Checkpoint& trained = parts.method.replicated() ? first : own;
  trained.restore("model", parts.model);
  trained.restore("optimizer", parts.optimizer);
  if (parts.average) trained.restore("average", *parts.average);
  MethodAfter method = {parts.method, first.step};
  if (run.settings.workers) own.restore("method", method);
  return {.steps = first.step,
          .seconds = std::strtod(first.notes.at(kSeconds).c_str(), nullptr),
          .sent_payload = std::strtoull(own.notes.at(kSentPayload).c_str(), nullptr, 10),
          .sent_overhead = std::strtoull(own.notes.at(kSentOverhead).c_str(), nullptr, 10)};
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
