#include "tern/apps/trainer/job/line_relay.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace tern {

LineRelay& LineRelay::operator=(LineRelay&& other) noexcept {
  std::swap(from_, other.from_);
  std::swap(to_, other.to_);
  std::swap(prefix_, other.prefix_);
  std::swap(last_words_, other.last_words_);
  std::swap(rest_, other.rest_);
  std::swap(kept_, other.kept_);
  return *this;
}

LineRelay::~LineRelay() {
  if (from_ >= 0) ::close(from_);
}

bool LineRelay::pump() {
  constexpr size_t kLongestLine = size_t{1} << 16;
  std::array<char, kLongestLine>
      buffer;  // all that a pipe holds: one read, so that a rank which never stops stops nobody
  const ssize_t got = from_ < 0 ? -1 : ::read(from_, buffer.data(), buffer.size());
  if (got > 0) {
    rest_.append(buffer.data(), static_cast<size_t>(got));
    size_t begin = 0;
    for (size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1)
      pass_on(rest_.substr(begin, end - begin));
    rest_.erase(0, begin);
    if (rest_.size() >= kLongestLine) pass_on(std::exchange(rest_, ""));
    return true;
  }
  if (from_ < 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return false;
  if (!rest_.empty()) pass_on(std::exchange(rest_, ""));
  ::close(std::exchange(from_, -1));
  return false;
}

void LineRelay::pass_on(const std::string& line) {
  if (!kept_.empty()) print(take_last_words());
  if (!last_words_.empty() && line.starts_with(last_words_))
    kept_ = line;
  else
    print(line);
}

std::string LineRelay::take_last_words() { return std::exchange(kept_, ""); }

void LineRelay::print(const std::string& line) const { print_over_live_line(*to_, prefix_ + line); }

void print_over_live_line(LineWriter& to, const std::string& line) {
  to.print((to.is_terminal() ? "\r\x1b[K" : "") + line);
}

}  // namespace tern
