#pragma once

#include <string>

namespace tern {

/// Passes on what comes out of a pipe, line by line, each behind a prefix. Owns the pipe's reading end.
class LineRelay {
 public:
  LineRelay() = default;
  /// `to` is a descriptor, not owned.
  LineRelay(int from, int to, std::string prefix) : from_(from), to_(to), prefix_(std::move(prefix)) {}
  LineRelay(LineRelay&& other) noexcept { *this = std::move(other); }
  LineRelay& operator=(LineRelay&& other) noexcept;
  ~LineRelay();

  /// To poll; -1 once there is nothing more to come.
  int descriptor() const { return from_; }
  /// Passes on what is there, without waiting.
  void pump();

 private:
  void write_line(const std::string& line) const;

  int from_ = -1, to_ = -1;
  std::string prefix_, rest_;
};

}  // namespace tern
