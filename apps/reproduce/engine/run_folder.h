#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/experiment.h"

namespace tern::reproduce {

/// Where a training run leaves its log, its checkpoints while it lasts, and all it says; where a study's numbers are
/// kept. Used by one thread.
class RunFolder {
 public:
  /// An InputError where the folder holds a run of other flags that has come to something.
  RunFolder(std::filesystem::path path, const Run& run);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path log() const { return path_ / "log.jsonl"; }
  std::filesystem::path output() const { return path_ / "output.txt"; }
  std::filesystem::path numbers() const { return path_ / "numbers.json"; }
  bool holds_study() const { return run_.is_study(); }

  /// Of a run that has ended.
  std::optional<RunResult> result() const;
  /// The whole command of a training run, as from its beginning.
  std::vector<std::string> command() const;

  /// Makes the folder ready, and returns the command that begins the training run, or goes on with it.
  std::vector<std::string> prepare() const;
  /// Makes the run a study, and keeps what it finds.
  void study(const StudyProgress& progress) const;
  /// Removes the checkpoints of a run that has ended.
  void tidy() const;
  /// The last line of what the run said.
  std::string last_words() const;

 private:
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path flags_file() const { return path_ / "flags.txt"; }
  void write_flags() const;
  /// An InputError where something other than a file, which cannot be removed, has the name of the numbers.
  void make_room() const;

  std::filesystem::path path_;
  Run run_;
};

}  // namespace tern::reproduce
