#include "tern/apps/trainer/job/child.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "tern/apps/trainer/program.h"
#include "tern/core/error.h"

namespace tern {
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

/// This process's environment, and `more` in front of it, where it is found first.
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

}  // namespace tern
