#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

namespace tern::test {

/// A pipe. The test owns both ends.
class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  }
  ~Pipe() {
    close_read_end();
    ::close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int write_end() const { return ends_[1]; }
  void close_read_end() {
    if (ends_[0] >= 0) ::close(ends_[0]);
    ends_[0] = -1;
  }
  /// Writes until one more byte would block. Returns the number of bytes written.
  size_t fill() const {
    ::fcntl(ends_[1], F_SETFL, O_NONBLOCK);
    size_t bytes = 0;
    while (::write(ends_[1], "x", 1) == 1) ++bytes;
    ::fcntl(ends_[1], F_SETFL, 0);
    return bytes;
  }
  /// Reads the bytes that are in the pipe now.
  std::string read() const {
    ::fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = ::read(ends_[0], buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<size_t>(got));
    return text;
  }

 private:
  int ends_[2];
};

}  // namespace tern::test
