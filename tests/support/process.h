#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace tern {

/// How a program ended, and its output.
struct Outcome {
  int code = 0;  ///< exit code, or 128 + the signal that ended it
  std::string out, err;
};

/// The descriptors that a program writes to, not owned. -1 stands for a file that Process::wait reads.
struct Streams {
  int out = -1, err = -1;
};

/// A program that runs beside the test. If it still runs when this object ends, SIGKILL ends it.
class Process {
 public:
  /// `arguments[0]` is the program's path.
  explicit Process(const std::vector<std::string>& arguments, Streams streams = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return id_; }
  void send(int signal) const;
  bool running();
  Outcome wait();
  /// Waits at most `time`. Returns true if the program has ended by itself.
  bool ends_within(std::chrono::seconds time);

 private:
  pid_t id_ = -1;
  bool ended_ = false;
  int status_ = 0;
  std::FILE* out_;
  std::FILE* err_;
};

/// The path of one of tern's programs. It is apps/NAME in the folder above the running test's folder. This holds in a
/// build, and in a copy of its programs at another place.
std::string built_program(const std::string& name);

/// Runs a program to its end.
inline Outcome run_program(const std::vector<std::string>& arguments) { return Process(arguments).wait(); }

}  // namespace tern
