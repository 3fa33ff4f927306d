#include "tern/optim/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "tern/core/atomic_file.h"

namespace tern {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-", kSuffix = ".tern", kNote = "note.";
constexpr std::string_view kFormat = "tern-checkpoint-1";

template <class Number>
bool parse(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::string file_name(int64_t step) { return fmt::format("{}{:08}{}", kPrefix, step, kSuffix); }

struct Found {
  int64_t step;
  fs::path file;
};

/// The checkpoints in `folder`, newest first.
std::vector<Found> scan(const fs::path& folder) {
  std::vector<Found> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) || name.size() < kPrefix.size() + kSuffix.size())
      continue;
    const std::string_view digits =
        std::string_view(name).substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
    int64_t step = 0;
    if (parse(digits, step)) found.push_back({step, entry.path()});
  }
  std::ranges::sort(found, std::greater(), &Found::step);
  return found;
}

void remove_older(const fs::path& folder, int64_t step, size_t kept) {
  std::error_code ignored;
  size_t seen = 0;
  for (const auto& found : scan(folder))
    if (found.step <= step && ++seen > kept) fs::remove(found.file, ignored);
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kPrefix) && name.find(std::string(kSuffix) + ".tmp-") != std::string::npos)
      fs::remove(entry.path(), ignored);
  }
}

/// Takes the number under `name` out of the metadata of `file`.
template <class Number>
void take(Metadata& metadata, const char* name, const fs::path& file, Number& number) {
  const auto entry = metadata.extract(name);
  check_input(!entry.empty() && parse(entry.mapped(), number), file.string(), ": __metadata__ '", name, "': found '",
              entry.empty() ? "" : entry.mapped(), "', expected a number");
}

bool is_whole(const Found& found) {
  try {
    read_checkpoint(found.file);
    return true;
  } catch (const InputError&) {
    return false;
  }
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

fs::path save_checkpoint(const fs::path& folder, const Checkpoint& checkpoint, size_t kept) {
  Metadata metadata = {{"format", std::string(kFormat)},
                       {"step", std::to_string(checkpoint.step)},
                       {"epoch", std::to_string(checkpoint.epoch)},
                       {"position", std::to_string(checkpoint.position)},
                       {"seed", std::to_string(checkpoint.seed)},
                       {"sections", ""}};
  for (const auto& [name, note] : checkpoint.notes) metadata[std::string(kNote) + name] = note;
  StateDict tensors;
  for (const auto& [section, state] : checkpoint.sections) {
    check(!section.empty() && section.find('/') == std::string::npos, "checkpoint: section '", section,
          "', expected a name without '/'");
    metadata["sections"] += section + "/";  // a section may have no tensors
    for (const auto& [name, tensor] : state) tensors.add(section + "/" + name, tensor);
  }
  fs::create_directories(folder);
  const fs::path file = folder / file_name(checkpoint.step);
  write_safetensors(file, tensors, metadata);
  remove_older(folder, checkpoint.step, kept);
  return file;
}

std::optional<fs::path> latest_checkpoint(const fs::path& folder) {
  const auto found = scan(folder);
  return found.empty() ? std::nullopt : std::optional(found.front().file);
}

Checkpoint load_checkpoint(const fs::path& folder) {
  const auto found = scan(folder);
  check_input(!found.empty(), folder.string(), ": no checkpoint (", kPrefix, "*", kSuffix, ") found there");
  try {
    return read_checkpoint(found.front().file);
  } catch (const InputError& error) {
    const auto good = std::find_if(found.begin() + 1, found.end(), is_whole);
    check_input(good != found.end(), error.what(), "; no other checkpoint in ", folder.string(), " is whole");
    fail_input({error.what(), "; the previous good checkpoint is ", good->file.string(),
                ": remove the broken one to resume from it"});
  }
}

bool is_checkpoint(const SafetensorsFile& file) {
  const auto format = file.metadata.find("format");
  return format != file.metadata.end() && format->second == kFormat;
}

Checkpoint to_checkpoint(SafetensorsFile read, const fs::path& file) {
  const auto format = read.metadata.extract("format");
  check_input(!format.empty() && format.mapped() == kFormat, file.string(), ": __metadata__ 'format': found '",
              format.empty() ? "" : format.mapped(), "', expected '", kFormat, "'");
  check_input(read.checked, file.string(), ": __metadata__ 'crc32c': not found, expected a checksum");

  Checkpoint checkpoint{.file = file};
  take(read.metadata, "step", file, checkpoint.step);
  take(read.metadata, "epoch", file, checkpoint.epoch);
  take(read.metadata, "position", file, checkpoint.position);
  take(read.metadata, "seed", file, checkpoint.seed);
  const std::string sections = read.metadata["sections"];
  for (size_t begin = 0, end; (end = sections.find('/', begin)) != std::string::npos; begin = end + 1)
    section_of(checkpoint, sections.substr(begin, end - begin));
  for (const auto& [name, note] : read.metadata)
    if (name.starts_with(kNote)) checkpoint.notes[name.substr(kNote.size())] = note;
  for (const auto& [name, tensor] : read.tensors) {
    const size_t slash = name.find('/');
    check_input(slash != std::string::npos, file.string(), ": tensor '", name, "' is in no section");
    section_of(checkpoint, name.substr(0, slash)).add(name.substr(slash + 1), tensor);
  }
  return checkpoint;
}

Checkpoint read_checkpoint(const fs::path& file) { return to_checkpoint(read_safetensors(file), file); }

}  // namespace tern
