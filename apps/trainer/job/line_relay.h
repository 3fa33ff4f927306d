#pragma once

#include <string>

#include "tern/apps/trainer/line_writer.h"

namespace tern {

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

}  // namespace tern
