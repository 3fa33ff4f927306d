#include "tern/apps/reproduce/engine/child_program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "tern/core/error.h"
#include "tern/trainer/job/program.h"

namespace tern::reproduce {

using namespace trainer;

ChildProgram::ChildProgram(const std::vector<std::string>& words, const std::filesystem::path& output) {
  std::vector<char*> arguments;
  for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  check_input(file >= 0, output.string(), ": cannot be written: ", std::strerror(errno));
  const pid_t parent = ::getpid();
  sigset_t none;
  sigemptyset(&none);
  id_ = ::fork();
  if (id_ == 0) {
    settle_child(parent, file, file, none);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(file);
  check(id_ > 0, words[0], " cannot be started: ", std::strerror(errno));
}

ChildProgram::~ChildProgram() {
  if (code_) return;
  ::kill(id_, SIGKILL);
  ::waitpid(id_, nullptr, 0);
}

void ChildProgram::send(int signal) const {
  if (!code_) ::kill(id_, signal);
}

std::optional<int> ChildProgram::wait(std::chrono::milliseconds patience) {
  constexpr auto kPause = std::chrono::milliseconds(20);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!code_) {
    int status = 0;
    const pid_t ended = ::waitpid(id_, &status, WNOHANG);
    if (ended == id_) {
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    } else if (ended < 0 && errno != EINTR) {
      const int error = errno;
      code_ = 127;  // it has ended, and its number may be another's
      fail({"the end of process ", id_, " is unknown: ", std::strerror(error)});
    } else {
      if (std::chrono::steady_clock::now() >= deadline) break;
      std::this_thread::sleep_for(kPause);
    }
  }
  return code_;
}

}  // namespace tern::reproduce
