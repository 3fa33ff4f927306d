#include "tern/trainer/run/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>

#include "tern/core/atomic_file.h"
#include "tern/core/error.h"
#include "tern/core/escaped.h"
#include "tern/core/random.h"
#include "tern/dist/methods/tensors.h"
#include "tern/optim/checkpoint.h"
#include "tern/trainer/flags/flag_table.h"
#include "tern/trainer/flags/rules.h"
#include "tern/trainer/flags/words.h"
#include "tern/trainer/rank/machine.h"
#include "tern/trainer/run/shards.h"

namespace tern::trainer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSeconds = "seconds";
constexpr const char* kSentPayload = "bytes sent, payload";
constexpr const char* kSentOverhead = "bytes sent, overhead";
constexpr const char* kCheckpointIndex = "model.safetensors.index.json";
constexpr const char* kTrainingData = "training data";
constexpr const char* kAveragePrefix = "average.";
constexpr size_t kChecksumDigits = 8;

int64_t epochs_of(const RunStart& run, int64_t steps) { return steps / run.steps_per_epoch; }
int64_t position_of(const RunStart& run, int64_t steps) { return steps % run.steps_per_epoch * run.samples_per_step; }

/// Loads a method's state from a checkpoint at step `steps`.
struct MethodAfter {
  DistributedOptimizer& method;
  int64_t steps;
  void load_state(const StateDict& state) { method.load_state(state, steps); }
};

/// The value for an error message.
std::string shown(const std::string& value) { return value.empty() ? "not given" : printable(value); }

/// The application's own flags: those that change the training, or those that only change evaluations.
Metadata own_flags(const TrainSettings& s, bool change_training) {
  Metadata flags;
  const auto wanted = [&](const std::string& flag) { return s.score_flags.contains(flag) != change_training; };
  for (const auto& [flag, word] : s.choices)
    if (wanted(flag)) flags["--" + flag] = word;
  for (const auto& [flag, count] : s.counts)
    if (wanted(flag)) flags["--" + flag] = std::to_string(count);
  return flags;
}

void check_contract(const Checkpoint& checkpoint, const Metadata& now) {
  const auto value_of = [](const Metadata& contract, const std::string& name) {
    const auto entry = contract.find(name);
    return entry == contract.end() ? "" : entry->second;
  };
  const auto check_name = [&](const std::string& name) {
    const std::string before = value_of(checkpoint.contract, name), value = value_of(now, name);
    check_input(before == value, "--resume: ", checkpoint.file.string(), ": ", name, " was ", shown(before), " and is ",
                shown(value), " now; start from its parameters with --init, or in another folder");
  };
  // These come first, because other flags have other defaults with them.
  for (const char* name : {"application", "--workers", "--method"}) check_name(name);
  for (const Metadata* contract : {&now, &checkpoint.contract})
    for (const auto& [name, value] : *contract) check_name(name);
}

/// `source` tells what the expected value comes from.
void check_field(const Checkpoint& checkpoint, const char* name, const MessagePart& found, const MessagePart& expected,
                 const MessagePart& source) {
  check_input(found.text() == expected.text(), "--resume: ", checkpoint.file.string(), ": '", name, "': found ",
              shown(found.text()), ", expected ", shown(expected.text()), ", ", source);
}

/// What a checkpoint keeps of a run: its identity and its data.
Metadata checkpoint_contract(const RunStart& run) {
  Metadata contract = run_identity(run);
  if (!run.data_fingerprint.empty()) contract[kTrainingData] = run.data_fingerprint;
  return contract;
}

/// Checks that this is the part of `rank` in a checkpoint of this run.
void check_part(const Checkpoint& part, const RunStart& run, int rank, int ranks) {
  check_contract(part, checkpoint_contract(run));
  check_field(part, "rank", part.rank, rank, "whose part belongs there");
  check_field(part, "ranks", part.ranks, ranks, "as this run has");
  check_field(part, "seed", part.seed, static_cast<uint64_t>(run.settings.seed), "as --seed");
  check_field(part, "epoch", part.epoch, epochs_of(run, part.step), join({"as at step ", part.step}));
  check_field(part, "position", part.position, position_of(run, part.step), join({"as at step ", part.step}));
}

/// Checks that the part was written together with rank 0's part, `first`.
void check_together(const Checkpoint& part, const Checkpoint& first) {
  const std::string source = "as in " + first.file.string();
  check_field(part, "run", part.run, first.run, source);
  check_field(part, "step", part.step, first.step, source);
  check_field(part, "crc32c", part.checksum, first.parts.at(static_cast<size_t>(part.rank) - 1), source);
}

/// Checks the counters of a section. A model counts batches; optimizers and averages count steps, at most `most`.
void check_counts(const Checkpoint& checkpoint, const char* section, int64_t most) {
  for (const auto& [name, tensor] : checkpoint.section(section)) {
    if (tensor.dtype() != DType::i64) continue;
    for (const int64_t count : tensor.span<int64_t>())
      check_input(count >= 0 && count <= most, "--resume: ", checkpoint.file.string(), ": ", section, ": '", name,
                  "': found ", count, ", expected 0 to ", most);
  }
}

/// Reads a number that `write_run` noted.
template <class Number>
Number noted(const Checkpoint& checkpoint, const char* name) {
  const auto note = checkpoint.notes.find(name);
  const std::string text = note == checkpoint.notes.end() ? "" : note->second;
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  check_input(error == std::errc() && end == text.data() + text.size() && std::isfinite(static_cast<double>(number)) &&
                  number >= 0,
              "--resume: ", checkpoint.file.string(), ": __metadata__ 'note.", name, "': found '", printable(text),
              "', expected a number, 0 or more");
  return number;
}

/// The model as a rank has it in its checkpoint.
StateDict model_section(const RunParts& parts, int rank) {
  return parts.cuts ? shard_of(parts.model, *parts.cuts, rank) : parts.model.state();
}

/// Loads a rank's section of a model.
struct SectionOf {
  const RunParts& parts;
  int rank;
  void load_state(const StateDict& state) { copy_state(state, model_section(parts, rank), "the model"); }
};

/// The tensors of a rank's part of a checkpoint that are read into the memory of a sharded model, by their names there.
StateDict places_of(const RunParts& parts, int rank) {
  StateDict places;
  if (parts.cuts == nullptr) return places;
  for (const auto& [name, tensor] : model_section(parts, rank)) places.add(kCheckpointedModel + name, tensor);
  for (const auto& [name, tensor] : parts.optimizer.state()) places.add("optimizer/" + name, tensor);
  return places;
}

/// The index of the slices in the files of a checkpoint.
void write_checkpoint_index(const std::string& folder, const std::string& file, const RunParts& parts, int ranks) {
  const auto file_of = [&](int rank) {
    return fs::relative(checkpoint_folder(folder, rank) / file, folder).generic_string();
  };
  write_shard_index(fs::path(folder) / kCheckpointIndex,
                    index_of(parts.model, *parts.cuts, ranks, file_of, kCheckpointedModel));
}

std::string checksum(Module& model, const SubnetCuts* cuts) {
  uint32_t crc = 0;
  for (const auto& [name, tensor] : model.state())
    if (cuts == nullptr || cuts->find(name) == nullptr) crc = tern::checksum(tensor, crc);
  return fmt::format("{:08x}", crc);
}

/// Whether a run with more steps has other learning rates in the first of them.
bool rates_depend_on_length(const TrainSettings& s) {
  const auto is_share = [](double at) { return at > 0 && at < 1; };
  return s.lr_schedule == LrSchedule::poly || s.lr_schedule == LrSchedule::cosine || is_share(s.warmup) ||
         (s.lr_schedule == LrSchedule::step && std::ranges::any_of(s.lr_steps, is_share));
}

}  // namespace

Metadata run_identity(const RunStart& run) {
  Metadata identity = {{"application", run.application},
                       {"training-" + run.noun, std::to_string(run.training_samples)}};
  visit_flags(run.settings, [&](const Flag& flag, const auto& field) {
    const bool acts = reason_without_effect(flag, run.settings).empty();
    if (flag.agreement == Agreement::result && acts) identity[std::string("--") + flag.name] = write_value(field);
  });
  if (rates_depend_on_length(run.settings)) identity["number of steps"] = std::to_string(run.total_steps);
  identity.merge(own_flags(run.settings, true));
  return identity;
}

std::string make_run_id(const Team& team) { return team.gather(team.leads() ? random_id(16) : ""); }

void check_no_run(const std::string& folder) {
  const auto latest = latest_checkpoint(folder);
  check_input(!latest, "--checkpoint: ", folder, " holds a run already (", latest ? latest->filename().string() : "",
              "): go on with --resume, or name another folder");
}

std::filesystem::path checkpoint_folder(const std::string& folder, int rank) {
  return rank == 0 ? std::filesystem::path(folder) : std::filesystem::path(folder) / fmt::format("rank-{}", rank);
}

void write_run(const std::string& folder, const RunStart& run, const RunPlace& place, const RunParts& parts,
               const Team& team, const Pulse& pulse) {
  Checkpoint checkpoint{.run = place.run,
                        .rank = team.rank(),
                        .ranks = team.size(),
                        .step = place.steps,
                        .epoch = epochs_of(run, place.steps),
                        .position = position_of(run, place.steps),
                        .seed = static_cast<uint64_t>(run.settings.seed),
                        .contract = checkpoint_contract(run)};
  checkpoint.notes = {{kSeconds, fmt::format("{}", place.seconds)},
                      {kSentPayload, fmt::format("{}", place.sent_payload)},
                      {kSentOverhead, fmt::format("{}", place.sent_overhead)}};
  if (team.leads() || parts.cuts) checkpoint.sections.emplace_back("model", model_section(parts, team.rank()));
  if (team.leads() || !parts.method.replicated()) {
    checkpoint.sections.emplace_back("optimizer", parts.optimizer.state());
    if (parts.average) checkpoint.sections.emplace_back("average", parts.average->state());
  }
  if (run.settings.workers) checkpoint.sections.emplace_back("method", parts.method.state());
  if (!team.leads()) {
    std::optional<Pulse::Work> writing(pulse);
    const auto saved = save_checkpoint(checkpoint_folder(folder, team.rank()), checkpoint, place.whole);
    writing.reset();
    team.gather(saved.checksum);
    return;
  }
  const std::string checksums = team.gather("");
  for (size_t at = 0; at < checksums.size(); at += kChecksumDigits)
    checkpoint.parts.push_back(checksums.substr(at, kChecksumDigits));
  const Pulse::Work writing(pulse);
  const auto saved = save_checkpoint(folder, checkpoint);
  if (parts.cuts) write_checkpoint_index(folder, saved.file.filename(), parts, team.size());
}

RunPlace read_run(const std::string& folder, const RunStart& run, const RunParts& parts, const Team& team) {
  const bool reads_first = team.leads() || !parts.cuts;
  const Checkpoint first = reads_first ? load_checkpoint(folder, places_of(parts, 0)) : load_checkpoint_place(folder);
  check_part(first, run, 0, team.size());
  check_input(first.step <= run.total_steps, "--resume: ", first.file.string(), " is at step ", first.step,
              ", this run ends at step ", run.total_steps);
  Checkpoint other;
  if (!team.leads()) {
    other = load_checkpoint_part(checkpoint_folder(folder, team.rank()) / first.file.filename(),
                                 places_of(parts, team.rank()));
    check_part(other, run, team.rank(), team.size());
    check_together(other, first);
  }
  const Checkpoint& own = team.leads() ? first : other;
  const Checkpoint& trained = parts.method.replicated() ? first : own;
  const Checkpoint& kept = parts.cuts ? own : first;
  check_counts(kept, "model", std::numeric_limits<int64_t>::max());
  kept.restore("model", SectionOf{parts, team.rank()});
  check_counts(trained, "optimizer", first.step);
  trained.restore("optimizer", parts.optimizer);
  if (parts.average) {
    check_counts(trained, "average", first.step);
    trained.restore("average", *parts.average);
  }
  if (run.settings.workers) own.restore("method", MethodAfter{parts.method, first.step});
  // A rank that is killed leaves a checkpoint whose index is that of the one before.
  if (parts.cuts && team.leads()) write_checkpoint_index(folder, first.file.filename(), parts, team.size());
  return {.run = first.run,
          .steps = first.step,
          .seconds = noted<double>(first, kSeconds),
          .sent_payload = noted<uint64_t>(own, kSentPayload),
          .sent_overhead = noted<uint64_t>(own, kSentOverhead)};
}

StateDict evaluated_state(const Checkpoint& checkpoint) {
  const StateDict& model = checkpoint.section("model");
  const auto averages = std::ranges::find(checkpoint.sections, "average", &std::pair<std::string, StateDict>::first);
  if (averages == checkpoint.sections.end()) return model;
  StateDict state;
  for (const auto& [name, tensor] : model) {
    const Tensor* average = averages->second.find(kAveragePrefix + name);
    state.add(name, average ? *average : tensor);
  }
  return state;
}

void load_evaluated_model(const std::string& folder, Module& model) {
  if (const fs::path index = fs::path(folder) / kCheckpointIndex; fs::exists(index))
    return model.load_state(join_shards(index, kCheckpointedModel));
  const Checkpoint checkpoint = load_checkpoint(folder);
  try {
    model.load_state(evaluated_state(checkpoint));
  } catch (const InputError& error) {
    fail_input({checkpoint.file.string(), ": ", error.what()});
  }
}

Contract run_contract(const RunStart& run, Module& model, const SubnetCuts* cuts) {
  const TrainSettings& s = run.settings;
  Contract contract = {versions().front()};
  for (const auto& [name, value] : run_identity(run))
    contract.emplace_back(name.starts_with("--") ? name.substr(2) : name, value);
  contract.emplace_back("total steps", std::to_string(run.total_steps));
  contract.emplace_back("first step", std::to_string(run.first_step));
  visit_flags(s, [&](const Flag& flag, const auto& field) {
    if (flag.agreement == Agreement::ranks) contract.emplace_back(flag.name, show_value(field));
  });
  for (const auto& [name, value] : own_flags(s, false)) contract.emplace_back(name.substr(2), value);
  contract.emplace_back("checkpoint", write_value(!s.checkpoint.empty()));  // the paths may differ
  contract.emplace_back(kTrainingData, run.data_fingerprint);
  std::map<std::string, Shape> shapes;
  for (const auto& [name, shape] : model.whole_shapes()) shapes[name] = shape;
  for (const auto& [name, parameter] : model.parameters())
    contract.emplace_back(name, join({shapes.at(name), " ", parameter->value().dtype()}));
  if (run.first_step == 0) contract.emplace_back("first values", checksum(model, cuts));
  return contract;
}

RunLock::RunLock(const std::string& folder) : folder_(folder), made_(make_folder(folder)) {
  descriptor_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(descriptor_);
  fail_input({"--checkpoint: ", folder, ": another run is at work there; wait for its end, or name another folder"});
}

RunLock::~RunLock() {
  std::error_code not_empty;
  if (made_) std::filesystem::remove(folder_, not_empty);
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace tern::trainer
