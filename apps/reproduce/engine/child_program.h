#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tern::reproduce {

/// A program that runs as a child of this process. It has its own process group, so that a terminal's Ctrl-C reaches it
/// only through its owner. It ends with the thread that started it, even if that ends by SIGKILL. One thread.
class ChildProgram {
 public:
  /// Starts the program `words[0]`. Appends its stdout and stderr to the file `output`. Throws InputError if that file
  /// cannot be written, and Error if the system cannot create a process.
  ChildProgram(const std::vector<std::string>& words, const std::filesystem::path& output);
  /// Sends SIGKILL if the program still runs, and waits for its end.
  ~ChildProgram();
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;

  void send(int signal) const;
  /// Waits for its end. Returns the exit code, or 128 + the signal that ended it; nullopt if it still runs after
  /// `patience`. Throws Error if the system does not tell how it ended.
  std::optional<int> wait(std::chrono::milliseconds patience);

 private:
  pid_t id_ = -1;
  std::optional<int> code_;
};

}  // namespace tern::reproduce
