#include "tern/apps/trainer/job/line_relay.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace tern {

LineRelay& LineRelay::operator=(LineRelay&& other) noexcept {
  std::swap(from_, other.from_);
  std::swap(to_, other.to_);
  std::swap(prefix_, other.prefix_);
  std::swap(rest_, other.rest_);
  return *this;
}

LineRelay::~LineRelay() {
  if (from_ >= 0) ::close(from_);
}

void LineRelay::pump() {
  char buffer[4096];
  ssize_t got = 0;
  while (from_ >= 0 && (got = ::read(from_, buffer, sizeof buffer)) > 0) {
    rest_.append(buffer, static_cast<size_t>(got));
    for (size_t end; (end = rest_.find('\n')) != std::string::npos; rest_.erase(0, end + 1))
      write_line(rest_.substr(0, end));
  }
  if (from_ < 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  if (!rest_.empty()) write_line(rest_);
  ::close(std::exchange(from_, -1));
}

void LineRelay::write_line(const std::string& line) const {
  // On a terminal, over rank 0's live line.
  const std::string text = (::isatty(to_) != 0 ? "\r\x1b[K" : "") + prefix_ + line + '\n';
  for (size_t done = 0; done < text.size();) {
    const ssize_t put = ::write(to_, text.data() + done, text.size() - done);
    if (put < 0 && errno != EINTR) return;
    if (put > 0) done += static_cast<size_t>(put);
  }
}

}  // namespace tern
