#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace tern {

/// How a program ended, and what it wrote.
struct Outcome {
  int code = 0;  ///< exit code, or 128 + the signal that ended it
  std::string out, err;
};

/// What a program writes to: descriptors, not owned; -1 is a file that Process::wait reads.
struct Streams {
  int out = -1, err = -1;
};

/// A program that runs beside the test; ended by SIGKILL with this object where it still runs.
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
  /// Whether it has ended by itself within `time`.
  bool ends_within(std::chrono::seconds time);

 private:
  pid_t id_ = -1;
  bool ended_ = false;
  int status_ = 0;
  std::FILE* out_;
  std::FILE* err_;
};

/// The path of one of tern's programs, apps/NAME beside the folder of the running test: in a build, and in a copy of
/// its programs that was taken elsewhere.
std::string built_program(const std::string& name);

/// Runs a program to its end.
inline Outcome run_program(const std::vector<std::string>& arguments) { return Process(arguments).wait(); }

}  // namespace tern
