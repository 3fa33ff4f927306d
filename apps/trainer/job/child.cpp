#include "tern/trainer/job/child.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "tern/core/error.h"
#include "tern/core/program.h"
#include "tern/trainer/job/program.h"

namespace tern::trainer {

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
  // All that a pipe holds. Reads only once, so that a rank that always writes does not block the others.
  std::array<char, kLongestLine> buffer;
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

namespace {

struct Pipe {
  int read = -1, write = -1;
};

Pipe make_pipe() {
  int ends[2];
  const int error = ::pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;
  check(error == 0, "a pipe for a rank's output: ", std::strerror(error));
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {ends[0], ends[1]};
}

/// This process's environment, with `more` in front. An entry of `more` replaces one with the same name.
std::vector<char*> environment_with(const std::vector<std::string>& more) {
  std::vector<char*> all;
  for (const auto& entry : more) all.push_back(const_cast<char*>(entry.c_str()));
  for (char** entry = environ; *entry; ++entry) {
    const size_t name = std::string_view(*entry).find('=') + 1;
    bool replaced = false;
    for (const auto& own : more) replaced |= own.compare(0, name, *entry, name) == 0;
    if (!replaced) all.push_back(*entry);
  }
  all.push_back(nullptr);
  return all;
}

}  // namespace

Child::Child(const ChildPlan& plan, Console& console) : rank_(plan.rank) {
  const std::string prefix = join({"[rank ", plan.rank, "] "});
  const Pipe output = plan.rank == 0 ? Pipe{} : make_pipe();
  const Pipe errors = make_pipe();
  if (plan.rank != 0) out = LineRelay(output.read, console.out, prefix);
  err = LineRelay(errors.read, console.err, prefix, plan.last_words);
  const std::string program = program_path();
  const std::vector<char*> environment = environment_with(plan.environment);
  const pid_t parent = ::getpid();
  id_ = ::fork();
  check(id_ >= 0, "rank ", plan.rank, " cannot be started: ", std::strerror(errno));
  if (id_ == 0) {
    settle_child(parent, output.write, errors.write, plan.blocked);
    ::signal(SIGTTOU, SIG_IGN);  // rank 0 may write to a terminal although it is in the background
    for (const int descriptor : plan.keep_open) ::fcntl(descriptor, F_SETFD, 0);
    ::execve(program.c_str(), plan.argv, environment.data());
    ::_exit(127);
  }
  running_ = true;
  if (output.write >= 0) ::close(output.write);
  ::close(errors.write);
}

Child::~Child() {
  if (!running_) return;
  send(SIGKILL);
  ::waitpid(id_, &status_, 0);
}

void Child::send(int signal) const {
  if (running_) ::kill(id_, signal);
}

void Child::kill() {
  send(SIGKILL);
  killed_ = true;
  stopped_since_.reset();
}

void Child::relay() {
  out.pump();
  err.pump();
}

bool Child::look() {
  while (running_ && ::waitpid(id_, &status_, WNOHANG | WUNTRACED | WCONTINUED) == id_) {
    stopped_since_.reset();
    if (WIFSTOPPED(status_)) stopped_since_ = std::chrono::steady_clock::now();
    running_ = stopped() || WIFCONTINUED(status_);
    if (!running_) return true;
  }
  return false;
}

int Child::signal() const { return WIFSIGNALED(status_) ? WTERMSIG(status_) : 0; }
int Child::code() const { return WEXITSTATUS(status_); }

}  // namespace tern::trainer
