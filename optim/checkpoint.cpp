#include "tern/optim/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "tern/core/atomic_file.h"
#include "tern/core/escaped.h"

namespace tern {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-", kSuffix = ".tern", kContract = "contract.", kNote = "note.";
constexpr std::string_view kFormat = "tern-checkpoint-2";

/// Parses a number that consists of digits only, without sign or spaces. Returns false for any other text.
template <class Number>
bool parse(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && text.front() != '-';
}

std::string file_name(int64_t step) { return fmt::format("{}{:08}{}", kPrefix, step, kSuffix); }

/// The step in the name of a checkpoint file; nothing for any other file.
std::optional<int64_t> step_in(const fs::path& file) {
  const std::string name = file.filename().string();
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) || name.size() < kPrefix.size() + kSuffix.size())
    return {};
  int64_t step = 0;
  if (!parse(std::string_view(name).substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()), step))
    return {};
  return step;
}

struct Found {
  int64_t step;
  fs::path file;
};

/// The checkpoints in `folder`, newest first.
std::vector<Found> scan(const fs::path& folder) {
  std::vector<Found> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (const auto step = step_in(entry.path())) found.push_back({*step, entry.path()});
  std::ranges::sort(found, std::greater(), &Found::step);
  return found;
}

std::vector<Found> scan_some(const fs::path& folder) {
  auto found = scan(folder);
  check_input(!found.empty(), folder.string(), ": no checkpoint (", kPrefix, "*", kSuffix, ") found there");
  return found;
}

void remove_older(const fs::path& folder, int64_t step) {
  constexpr size_t kKept = 2;
  std::error_code ignored;
  size_t seen = 0;
  for (const auto& found : scan(folder))
    if (found.step <= step && ++seen > kKept) fs::remove(found.file, ignored);
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kPrefix) && name.find(std::string(kSuffix) + ".tmp-") != std::string::npos)
      fs::remove(entry.path(), ignored);
  }
}

/// Reads fields from the metadata of `file`. Each field that is read is removed from the metadata.
class Fields {
 public:
  Fields(Metadata& metadata, const fs::path& file) : metadata_(metadata), file_(file) {}

  std::string text(const std::string& name) {
    const auto entry = metadata_.extract(name);
    return entry.empty() ? "" : entry.mapped();
  }
  template <class Number>
  void number(const std::string& name, Number& number) {
    const std::string found = text(name);
    if (!parse(found, number)) fail(name, found, "a number, 0 or more");
  }
  [[noreturn]] void fail(const std::string& name, const std::string& found, const MessagePart& expected) const {
    fail_input({file_.string(), ": __metadata__ '", name, "': found '", printable(found), "', expected ", expected});
  }

 private:
  Metadata& metadata_;
  const fs::path& file_;
};

/// The words of a text that are separated by single spaces.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    words.emplace_back(word);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return words;
}

void take_place(Fields& fields, Checkpoint& checkpoint) {
  checkpoint.run = fields.text("run");
  if (checkpoint.run.empty()) fields.fail("run", "", "the id of a run");
  fields.number("ranks", checkpoint.ranks);
  fields.number("rank", checkpoint.rank);
  if (checkpoint.ranks == 0) fields.fail("ranks", "0", "1 or more");
  if (checkpoint.rank >= checkpoint.ranks)
    fields.fail("rank", std::to_string(checkpoint.rank), join({"less than ", checkpoint.ranks, " ranks"}));
  const std::string parts = fields.text("parts");
  checkpoint.parts = words_of(parts);
  const int64_t others = checkpoint.rank == 0 ? checkpoint.ranks - 1 : 0;
  if (std::ssize(checkpoint.parts) != others) fields.fail("parts", parts, join({others, " checksums"}));
}

bool is_whole(const Found& found) {
  try {
    read_checkpoint(found.file);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

/// The newest checkpoint in `folder` before `step` that can be read; nullopt if there is none.
std::optional<fs::path> good_before(const fs::path& folder, int64_t step) {
  for (const Found& found : scan(folder))
    if (found.step < step && is_whole(found)) return found.file;
  return {};
}

StateDict& section_of(Checkpoint& checkpoint, std::string_view name) {
  for (auto& [other, state] : checkpoint.sections)
    if (other == name) return state;
  return checkpoint.sections.emplace_back(name, StateDict()).second;
}

}  // namespace

const StateDict& Checkpoint::section(std::string_view name) const {
  for (const auto& [other, state] : sections)
    if (other == name) return state;
  fail_input({file.string(), ": no section '", name, "', expected one in this run's checkpoint"});
}

SavedCheckpoint save_checkpoint(const fs::path& folder, const Checkpoint& checkpoint, std::optional<int64_t> whole) {
  check(!checkpoint.run.empty(), "checkpoint: no id of its run");
  Metadata metadata = {{"format", std::string(kFormat)},
                       {"run", checkpoint.run},
                       {"rank", std::to_string(checkpoint.rank)},
                       {"ranks", std::to_string(checkpoint.ranks)},
                       {"parts", fmt::format("{}", fmt::join(checkpoint.parts, " "))},
                       {"step", std::to_string(checkpoint.step)},
                       {"epoch", std::to_string(checkpoint.epoch)},
                       {"position", std::to_string(checkpoint.position)},
                       {"seed", std::to_string(checkpoint.seed)},
                       {"sections", ""}};
  for (const auto& [name, value] : checkpoint.contract) metadata[std::string(kContract) + name] = value;
  for (const auto& [name, note] : checkpoint.notes) metadata[std::string(kNote) + name] = note;
  StateDict tensors;
  for (const auto& [section, state] : checkpoint.sections) {
    check(!section.empty() && section.find('/') == std::string::npos, "checkpoint: section '", section,
          "', expected a name without '/'");
    metadata["sections"] += section + "/";  // a section may have no tensors
    for (const auto& [name, tensor] : state) tensors.add(section + "/" + name, tensor);
  }
  make_folder(folder);
  const fs::path file = folder / file_name(checkpoint.step);
  std::string checksum = write_safetensors(file, tensors, metadata);
  remove_older(folder, whole.value_or(checkpoint.step));
  return {file, std::move(checksum)};
}

std::optional<fs::path> latest_checkpoint(const fs::path& folder) {
  const auto found = scan(folder);
  return found.empty() ? std::nullopt : std::optional(found.front().file);
}

Checkpoint load_checkpoint(const fs::path& folder, const StateDict& into) {
  const auto found = scan_some(folder);
  try {
    return read_checkpoint(found.front().file, into);
  } catch (const InputError& error) {
    const auto good = good_before(folder, found.front().step);
    check_input(good.has_value(), error.what(), "; no other checkpoint in ", folder.string(), " is whole");
    fail_input({error.what(), "; the previous good checkpoint is ", good->string(),
                ": remove the broken one to resume from it"});
  }
}

Checkpoint load_checkpoint_part(const fs::path& file, const StateDict& into) {
  try {
    return read_checkpoint(file, into);
  } catch (const InputError& error) {
    const auto good = good_before(file.parent_path(), step_in(file).value_or(0));
    if (!good) throw;
    fail_input({error.what(), "; the previous good one is ", good->string(),
                ": remove later steps from the folders of all ranks to resume from it"});
  }
}

bool is_checkpoint(const SafetensorsFile& file) {
  const auto format = file.metadata.find("format");
  return format != file.metadata.end() && format->second == kFormat;
}

namespace {

/// What the metadata say. Takes some of them.
Checkpoint to_place(SafetensorsFile& read, const fs::path& file) {
  Fields fields(read.metadata, file);
  if (!is_checkpoint(read)) fields.fail("format", fields.text("format"), join({"'", kFormat, "'"}));
  Checkpoint checkpoint{.file = file, .checksum = read.checksum};
  take_place(fields, checkpoint);
  fields.number("step", checkpoint.step);
  fields.number("epoch", checkpoint.epoch);
  fields.number("position", checkpoint.position);
  fields.number("seed", checkpoint.seed);
  const std::string sections = read.metadata["sections"];
  for (size_t begin = 0, end; (end = sections.find('/', begin)) != std::string::npos; begin = end + 1)
    section_of(checkpoint, sections.substr(begin, end - begin));
  for (const auto& [name, value] : read.metadata) {
    if (name.starts_with(kContract)) checkpoint.contract[name.substr(kContract.size())] = value;
    if (name.starts_with(kNote)) checkpoint.notes[name.substr(kNote.size())] = value;
  }
  return checkpoint;
}

}  // namespace

Checkpoint to_checkpoint(SafetensorsFile read, const fs::path& file) {
  Checkpoint checkpoint = to_place(read, file);
  check_input(!read.checksum.empty(), file.string(), ": __metadata__ 'crc32c': not found, expected a checksum");
  for (const auto& [name, tensor] : read.tensors) {
    const size_t slash = name.find('/');
    check_input(slash != std::string::npos, file.string(), ": tensor '", name, "' is in no section");
    section_of(checkpoint, name.substr(0, slash)).add(name.substr(slash + 1), tensor);
  }
  return checkpoint;
}

namespace {

void check_name(const Checkpoint& checkpoint) {
  const auto named = step_in(checkpoint.file);
  check_input(!named || *named == checkpoint.step, checkpoint.file.string(), ": __metadata__ 'step': found '",
              checkpoint.step, "', expected '", named.value_or(0), "' as in the file's name");
}

}  // namespace

Checkpoint read_checkpoint(const fs::path& file, const StateDict& into) {
  SafetensorsFile read = read_safetensors(file, into);
  Checkpoint checkpoint = to_checkpoint(std::move(read), file);
  check_name(checkpoint);
  return checkpoint;
}

Checkpoint load_checkpoint_place(const fs::path& folder) {
  const fs::path file = scan_some(folder).front().file;
  SafetensorsFile read;
  read.metadata = read_safetensors_metadata(file);
  Checkpoint checkpoint = to_place(read, file);
  check_name(checkpoint);
  return checkpoint;
}

}  // namespace tern
