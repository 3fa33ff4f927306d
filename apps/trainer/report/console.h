#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

namespace tern::trainer {

/// Writes lines to a descriptor and never waits for its reader. Lines that the reader has not taken are kept, up to 1
/// MiB. Then the oldest are dropped, and one line says how many. An error (the reader is gone, the disk is full) loses
/// what is kept. Used by one thread at a time.
class LineWriter {
 public:
  /// `descriptor` is not owned, and its flags stay as they are, since other processes may share it.
  explicit LineWriter(int descriptor);
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  bool is_terminal() const { return is_terminal_; }
  /// Adds the line break.
  void print(const std::string& line);
  /// A text without a line break, which the next one replaces if it is not written yet.
  void show(const std::string& text);
  /// Writes what the reader takes now.
  void flush();
  /// Whether lines wait for the reader.
  bool pending() const { return !started_.empty() || dropped_ > 0 || !texts_.empty(); }
  /// Why lines did not fit on the disk, as errno has it; 0 if all did.
  int full() const { return full_; }
  /// To poll for POLLOUT; -1 if nothing is pending.
  int descriptor() const { return pending() ? descriptor_ : -1; }
  /// Waits for the reader until nothing is pending. Gives up when the reader has taken nothing for `patience()`, which
  /// is asked again and again, and returns the number of lines that are lost.
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
  int reopened_ = -1;  ///< the same pipe or terminal, without waiting
  bool is_socket_ = false, is_terminal_ = false;
  std::string started_;  ///< the rest of a text that is partly written
  int64_t dropped_ = 0;  ///< lines, before those that are kept
  std::deque<Text> texts_;
  size_t bytes_ = 0;  ///< of texts_
  int full_ = 0;
};

/// What a program tells a person while it works: its own stdout and stderr, whose readers it never waits for before its
/// end.
struct Console {
  LineWriter out{STDOUT_FILENO}, err{STDERR_FILENO};
  double patience = 60;  ///< seconds that the end waits for a reader who takes nothing

  /// At the end of the program `name`, with its exit code: waits for the readers of what is pending, and says on stderr
  /// how many lines of stdout are lost. A signal, and a code that says that the run was not done, cut this short.
  void finish(const std::string& name, int code);
};

/// Writes all of `text` to stdout and waits for its reader as long as it takes. A reader that has gone is no error; an
/// InputError says why else it cannot be written.
void print_plainly(const std::string& text);

}  // namespace tern::trainer
