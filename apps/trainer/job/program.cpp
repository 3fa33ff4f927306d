#include "tern/trainer/job/program.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace tern::trainer {

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

void wait_passively(char** argv) {
  // Some microseconds of spinning: a wait between two loops of one training step is mostly shorter than a sleep.
  constexpr const char* kSpins = "1000";
  if (std::getenv("GOMP_SPINCOUNT")) return;
  if (setenv("OMP_WAIT_POLICY", "PASSIVE", 0) != 0 || setenv("GOMP_SPINCOUNT", kSpins, 0) != 0) return;
  execv(program_path().c_str(), argv);
}

}  // namespace tern::trainer
