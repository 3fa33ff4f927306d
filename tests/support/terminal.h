#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace tern::test {

/// A terminal whose screen the test reads.
class Terminal {
 public:
  Terminal() : screen_(::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)) {
    if (screen_ < 0 || ::grantpt(screen_) != 0 || ::unlockpt(screen_) != 0) throw std::runtime_error("no terminal");
    program_end_ = ::open(::ptsname(screen_), O_RDWR | O_NOCTTY | O_CLOEXEC);
  }
  ~Terminal() {
    ::close(program_end_);
    ::close(screen_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// The descriptor that a program writes to.
  int program_end() const { return program_end_; }
  /// The text written since the last call. Line breaks are "\r
  /// ".
  std::string read() const {
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = ::read(screen_, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<size_t>(got));
    return text;
  }

 private:
  int screen_, program_end_;
};

}  // namespace tern::test
