#include "tern/apps/trainer/program.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <filesystem>

namespace tern {

std::string program_path() {
  constexpr const char* kSelf = "/proc/self/exe";
  std::error_code error;
  const auto path = std::filesystem::read_symlink(kSelf, error);
  // A program that was replaced while it runs is still there under /proc alone.
  return error || !std::filesystem::exists(path, error) ? kSelf : path.string();
}

void settle_output() {
  std::signal(SIGPIPE, SIG_IGN);
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0) ::open("/dev/null", O_RDWR);  // takes the lowest number that is free
}

void settle_child(pid_t parent, int output, int errors, const sigset_t& blocked) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  if (output >= 0) ::dup2(output, STDOUT_FILENO);
  if (errors >= 0) ::dup2(errors, STDERR_FILENO);
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
}

}  // namespace tern
