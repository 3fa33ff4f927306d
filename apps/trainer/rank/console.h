#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

namespace tern::trainer {

/// Writes lines to a descriptor and never waits for its reader. Keeps up to 1 MiB of lines that the reader has not
/// taken. If there are more, drops the oldest, and one line tells how many. If writing fails (the reader is gone, the
/// disk is full), drops all pending lines. One thread at a time.
class LineWriter {
 public:
  /// `descriptor` is not owned. Its flags do not change, because other processes may share it.
  explicit LineWriter(int descriptor);
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  bool is_terminal() const { return is_terminal_; }
  /// Writes a line; adds the line break.
  void print(const std::string& line);
  /// Writes a text without a line break. If it is not yet written when the next such text comes, that one replaces it.
  void show(const std::string& text);
  /// Writes as much as the reader takes now.
  void flush();
  /// Whether there is unwritten text.
  bool pending() const { return !started_.empty() || dropped_ > 0 || !texts_.empty(); }
  /// If lines did not fit on the disk, the errno; otherwise 0.
  int full() const { return full_; }
  /// The descriptor to poll for POLLOUT; -1 if nothing is pending.
  int descriptor() const { return pending() ? descriptor_ : -1; }
  /// Waits until the reader has taken everything. Gives up if it takes nothing for `patience()`, which is called again
  /// and again. Returns the number of lost lines.
  int64_t finish(const std::function<std::chrono::duration<double>()>& patience);

 private:
  struct Text {
    std::string text;
    bool is_line;
  };

  void add(Text text);
  std::string next() const;
  void remove_next();
  void lose_all(int error);
  std::ptrdiff_t put(const std::string& text) const;

  int descriptor_;
  int reopened_ = -1;  ///< the same pipe or terminal, opened as non-blocking
  bool is_socket_ = false, is_terminal_ = false;
  std::string started_;  ///< the rest of a partly written text
  int64_t dropped_ = 0;  ///< number of dropped lines, which came before those in texts_
  std::deque<Text> texts_;
  size_t bytes_ = 0;  ///< of texts_
  int full_ = 0;
};

/// The stdout and stderr of a program. The program waits for their readers only at its end.
struct Console {
  LineWriter out{STDOUT_FILENO}, err{STDERR_FILENO};
  double patience = 60;  ///< seconds to wait at the end for a reader that takes nothing

  /// Call this at the end of the program `name`, with its exit code. Waits for the readers of pending output, and tells
  /// on stderr how many lines of stdout are lost. After a signal, it waits only shortly. If the code is not 0, it waits
  /// only shortly for stdout.
  void finish(const std::string& name, int code);
};

/// A number as people read it: "1,256,080".
std::string grouped(int64_t number);

/// Writes all of `text` to stdout and waits for its reader as long as necessary. A closed pipe is not an error. Throws
/// InputError if writing fails for another reason.
void print_plainly(const std::string& text);

}  // namespace tern::trainer
