#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "tern/trainer/report/console.h"

namespace tern::trainer {

/// Passes on what comes out of a pipe, line by line, each behind a prefix. Owns the pipe's reading end.
class LineRelay {
 public:
  LineRelay() = default;
  /// `to` is not owned. A line that begins with `last_words` is kept until the next line comes.
  LineRelay(int from, LineWriter& to, std::string prefix, std::string last_words = "")
      : from_(from), to_(&to), prefix_(std::move(prefix)), last_words_(std::move(last_words)) {}
  LineRelay(LineRelay&& other) noexcept { *this = std::move(other); }
  LineRelay& operator=(LineRelay&& other) noexcept;
  ~LineRelay();

  /// To poll; -1 once there is nothing more to come.
  int descriptor() const { return from_; }
  /// Passes on what is there, without waiting. Returns false if nothing was.
  bool pump();
  /// Takes the line that is kept, without its prefix; empty if there is none.
  std::string take_last_words();
  void print(const std::string& line) const;

 private:
  void pass_on(const std::string& line);

  int from_ = -1;
  LineWriter* to_ = nullptr;
  std::string prefix_, last_words_;
  std::string rest_;  ///< the beginning of a line
  std::string kept_;
};

/// Prints `line` over the live line that rank 0 may have on the same terminal.
void print_over_live_line(LineWriter& to, const std::string& line);

/// How to start a rank: this program anew.
struct ChildPlan {
  int rank = 0;
  char** argv = nullptr;
  std::vector<std::string> environment = {};  ///< "NAME=value", beside this process's own
  std::vector<int> keep_open = {};            ///< descriptors that the child inherits
  sigset_t blocked = {};                      ///< signals that wait until the rank is ready to take them
  std::string last_words = {};                ///< begins a sentence on stderr that LineRelay keeps
};

/// A rank that runs as a child of this process, in a process group of its own, so that a terminal's Ctrl-C reaches it
/// through its parent alone. It ends with the thread that started it, even by SIGKILL. Rank 0 writes to this process's
/// own stdout; what else ranks write is relayed to `console` behind "[rank 2] ".
class Child {
 public:
  /// An Error where the system has no process left.
  Child(const ChildPlan& plan, Console& console);
  /// Sends SIGKILL where it still runs.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int rank() const { return rank_; }
  pid_t id() const { return id_; }
  void send(int signal) const;
  /// SIGKILL, because it does not end by itself.
  void kill();
  bool killed() const { return killed_; }
  /// Passes on what it has written, without waiting.
  void relay();
  /// Looks whether it has stopped, gone on or ended; true where it has just ended.
  bool look();
  bool running() const { return running_; }
  bool stopped() const { return stopped_since_.has_value(); }
  std::optional<std::chrono::steady_clock::time_point> stopped_since() const { return stopped_since_; }
  /// Once it has ended: by which signal, 0 where by itself, and then with which code.
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
