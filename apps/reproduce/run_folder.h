#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tern/apps/reproduce/run.h"

namespace tern {

/// Where a run leaves its log, its checkpoints while it lasts, and all it says. Used by one thread.
class RunFolder {
 public:
  /// An InputError where the folder holds a run of other flags.
  RunFolder(std::filesystem::path path, const Run& run);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path log() const { return path_ / "log.jsonl"; }
  std::filesystem::path output() const { return path_ / "output.txt"; }

  /// Of a run that has ended.
  std::optional<RunResult> result() const;
  /// The whole command, as of a run from its beginning.
  std::vector<std::string> command() const;

  /// Makes the folder ready, and returns the command that begins the run, or goes on with it.
  std::vector<std::string> prepare() const;
  /// Removes the checkpoints of a run that has ended.
  void tidy() const;
  /// The last line of what the run said.
  std::string last_words() const;

 private:
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path flags_file() const { return path_ / "flags.txt"; }

  std::filesystem::path path_;
  Run run_;
};

}  // namespace tern
