#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tern/apps/reproduce/engine/experiment.h"

namespace tern::reproduce {

/// The folder of a run. A training run has its log, its output and, until it ends, its checkpoints here. A study has
/// its numbers here. One thread.
class RunFolder {
 public:
  /// Throws InputError if the folder has a log or numbers of a run with other flags.
  RunFolder(std::filesystem::path path, const Run& run);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path log() const { return path_ / "log.jsonl"; }
  std::filesystem::path output() const { return path_ / "output.txt"; }
  std::filesystem::path numbers() const { return path_ / "numbers.json"; }
  bool holds_study() const { return run_.is_study(); }

  /// The result of the run, if it has finished.
  std::optional<RunResult> result() const;
  /// The full command of a training run, without --resume.
  std::vector<std::string> command() const;

  /// Prepares the folder. Returns the command that starts or resumes the training run.
  std::vector<std::string> prepare() const;
  /// Runs the study and saves its numbers.
  void study(const StudyProgress& progress) const;
  /// Removes the checkpoints after the run has finished.
  void tidy() const;
  /// The last line of the run's output.
  std::string last_words() const;

 private:
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  std::filesystem::path flags_file() const { return path_ / "flags.txt"; }
  void write_flags() const;
  /// Removes anything that is not a file but has the name of the numbers file. Throws InputError if it cannot.
  void make_room() const;

  std::filesystem::path path_;
  Run run_;
};

}  // namespace tern::reproduce
