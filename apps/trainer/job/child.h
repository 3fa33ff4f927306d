#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "tern/trainer/rank/console.h"

namespace tern::trainer {

/// Copies the output of a pipe line by line, with a prefix before each line. Owns the reading end of the pipe.
class LineRelay {
 public:
  LineRelay() = default;
  /// `to` is not owned. If a line begins with `last_words`, it is held back until the next line arrives.
  LineRelay(int from, LineWriter& to, std::string prefix, std::string last_words = "")
      : from_(from), to_(&to), prefix_(std::move(prefix)), last_words_(std::move(last_words)) {}
  LineRelay(LineRelay&& other) noexcept { *this = std::move(other); }
  LineRelay& operator=(LineRelay&& other) noexcept;
  ~LineRelay();

  /// The descriptor to poll; -1 after the end of the output.
  int descriptor() const { return from_; }
  /// Copies what is available, without waiting. Returns false if there was nothing.
  bool pump();
  /// Returns the line that was held back, without its prefix, and forgets it; empty if there is none.
  std::string take_last_words();
  void print(const std::string& line) const;

 private:
  void pass_on(const std::string& line);

  int from_ = -1;
  LineWriter* to_ = nullptr;
  std::string prefix_, last_words_;
  std::string rest_;  ///< the start of an unfinished line
  std::string kept_;
};

/// Prints `line`; on a terminal, overwrites the progress line that rank 0 may show there.
void print_over_live_line(LineWriter& to, const std::string& line);

/// How to start a rank: run this program again.
struct ChildPlan {
  int rank = 0;
  char** argv = nullptr;
  std::vector<std::string> environment = {};  ///< "NAME=value", added to this process's environment
  std::vector<int> keep_open = {};            ///< descriptors that the child inherits
  sigset_t blocked = {};                      ///< signals that stay blocked until the rank is ready for them
  std::string last_words = {};                ///< start of the stderr line that LineRelay holds back
};

/// A rank that runs as a child of this process. It has its own process group, so that a terminal's Ctrl-C reaches it
/// only through its parent. It ends with the thread that started it, even if that ends by SIGKILL. Rank 0 writes to
/// this process's own stdout. All other output goes to `console`, with a prefix such as "[rank 2] ".
class Child {
 public:
  /// Starts the rank. Throws Error if the system cannot create a pipe or a process.
  Child(const ChildPlan& plan, Console& console);
  /// Sends SIGKILL if the rank still runs, and waits for its end.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int rank() const { return rank_; }
  pid_t id() const { return id_; }
  void send(int signal) const;
  /// Sends SIGKILL, because the rank does not end by itself.
  void kill();
  bool killed() const { return killed_; }
  /// Copies the rank's available output, without waiting.
  void relay();
  /// Checks whether the rank has stopped, continued or ended. Returns true if it has just ended.
  bool look();
  bool running() const { return running_; }
  bool stopped() const { return stopped_since_.has_value(); }
  std::optional<std::chrono::steady_clock::time_point> stopped_since() const { return stopped_since_; }
  /// After its end: the signal that ended it, or 0 if it ended by itself; and its exit code in that case.
  int signal() const;
  int code() const;

  LineRelay out, err;

 private:
  int rank_ = 0;
  pid_t id_ = -1;
  bool running_ = false, killed_ = false;
  std::optional<std::chrono::steady_clock::time_point> stopped_since_;
  int status_ = 0;
};

}  // namespace tern::trainer
