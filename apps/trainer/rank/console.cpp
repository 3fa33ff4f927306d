#include "tern/trainer/rank/console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <tuple>

#include "tern/core/error.h"
#include "tern/trainer/application.h"
#include "tern/trainer/rank/interrupt.h"

namespace tern::trainer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostPending = size_t{1} << 20;  // bytes

}  // namespace

LineWriter::LineWriter(int descriptor) : descriptor_(descriptor), is_terminal_(::isatty(descriptor) != 0) {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) return;
  is_socket_ = S_ISSOCK(status.st_mode);
  // O_NONBLOCK on `descriptor` itself would affect every process that shares it, such as the shell.
  if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode))
    reopened_ =
        ::open(fmt::format("/proc/self/fd/{}", descriptor).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

LineWriter::~LineWriter() {
  if (reopened_ >= 0) ::close(reopened_);
}

void LineWriter::print(const std::string& line) {
  add({line + '\n', true});
  flush();
}

void LineWriter::show(const std::string& text) {
  if (!texts_.empty() && !texts_.back().is_line) {
    bytes_ -= texts_.back().text.size();
    texts_.pop_back();
  }
  add({text, false});
  flush();
}

void LineWriter::add(Text text) {
  bytes_ += text.text.size();
  texts_.push_back(std::move(text));
  for (; bytes_ > kMostPending && texts_.size() > 1; texts_.pop_front()) {
    bytes_ -= texts_.front().text.size();
    dropped_ += texts_.front().is_line ? 1 : 0;
  }
}

void LineWriter::flush() {
  while (pending()) {
    const std::string text = next();
    const ssize_t written = put(text);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return;
    if (written < 0) return lose_all(errno);
    remove_next();
    started_ = text.substr(static_cast<size_t>(written));
  }
}

std::string LineWriter::next() const {
  if (!started_.empty()) return started_;
  if (dropped_ == 0) return texts_.front().text;
  return fmt::format("({} line{} dropped: the reader did not keep up)\n", grouped(dropped_), dropped_ == 1 ? "" : "s");
}

void LineWriter::remove_next() {
  if (!started_.empty()) return started_.clear();
  if (dropped_ > 0) {
    dropped_ = 0;
    return;
  }
  bytes_ -= texts_.front().text.size();
  texts_.pop_front();
}

void LineWriter::lose_all(int error) {
  if (error == ENOSPC || error == EFBIG || error == EDQUOT) full_ = error;  // other errors mean that the reader is gone
  started_.clear();
  texts_.clear();
  dropped_ = 0;
  bytes_ = 0;
}

/// As ::write, but fails with EAGAIN instead of waiting.
ssize_t LineWriter::put(const std::string& text) const {
  if (reopened_ >= 0) return ::write(reopened_, text.data(), text.size());
  if (is_socket_) return ::send(descriptor_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  // A file is always ready. A pipe that could not be reopened takes PIPE_BUF bytes at once if it is ready.
  pollfd entry = {descriptor_, POLLOUT, 0};
  if (::poll(&entry, 1, 0) == 0) {
    errno = EAGAIN;
    return -1;
  }
  return ::write(descriptor_, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
}

int64_t LineWriter::finish(const std::function<std::chrono::duration<double>()>& patience) {
  constexpr int kSlice = 50;  // ms
  auto taken = Clock::now();
  const auto left = [this] { return std::tuple(started_.size(), dropped_, texts_.size()); };
  while (pending()) {
    const auto before = left();
    flush();
    if (left() != before) taken = Clock::now();
    if (!pending()) break;
    if (Clock::now() - taken >= patience())
      return dropped_ + (started_.empty() ? 0 : 1) + std::ranges::count_if(texts_, &Text::is_line);
    pollfd entry = {descriptor_, POLLOUT, 0};
    ::poll(&entry, 1, kSlice);
  }
  return 0;
}

void Console::finish(const std::string& name, int code) {
  if (out.full() != 0)
    err.print(fmt::format("{}: stdout cannot be written: {}; lines of it are lost", name, std::strerror(out.full())));
  if (!out.pending() && !err.pending()) return;
  const InterruptGuard interrupt;
  const auto wait = [&](LineWriter& writer, bool in_full) {
    constexpr double kShort = 1;  // in seconds, for a reader that still reads
    return writer.finish([&] {
      return std::chrono::duration<double>(in_full && !interrupt.interrupted() ? patience : std::min(kShort, patience));
    });
  };
  const int64_t lost = wait(out, code == kDone);
  if (lost > 0)
    err.print(fmt::format("{}: the last {} line{} of stdout {} not written: its reader took nothing", name,
                          grouped(lost), lost == 1 ? "" : "s", lost == 1 ? "was" : "were"));
  wait(err, lost == 0 && code != kInterrupted);
}

std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  const size_t first = number < 0 ? 1 : 0;
  for (size_t place = digits.size(); place > first + 3;) digits.insert(place -= 3, 1, ',');
  return digits;
}

void print_plainly(const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (written < 0 && errno == EPIPE) return;
    check_input(written >= 0 || errno == EINTR, "stdout: cannot be written: ", std::strerror(errno));
    if (written > 0) done += static_cast<size_t>(written);
  }
}

}  // namespace tern::trainer
