#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tern::reproduce {

/// A program that runs beside this one, in a process group of its own, so that a terminal's Ctrl-C reaches it through
/// its owner alone. It ends with the thread that started it, even by SIGKILL. Used by one thread.
class ChildProgram {
 public:
  /// `words[0]` is its file. What it says goes behind what stands in the file `output`. An Error where the system has
  /// no process left.
  ChildProgram(const std::vector<std::string>& words, const std::filesystem::path& output);
  /// Sends SIGKILL where it still runs.
  ~ChildProgram();
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;

  void send(int signal) const;
  /// Waits for its end: the exit code, or 128 + the signal that ended it; nullopt where it outlasts `patience`.
  std::optional<int> wait(std::chrono::milliseconds patience);

 private:
  pid_t id_ = -1;
  std::optional<int> code_;
};

}  // namespace tern::reproduce
