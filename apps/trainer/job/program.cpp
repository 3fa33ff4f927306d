#include "tern/trainer/job/program.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <new>
#include <system_error>

#include "tern/core/error.h"
#include "tern/core/escaped.h"
#include "tern/dist/comm/failure.h"
#include "tern/trainer/application.h"
#include "tern/trainer/rank/interrupt.h"

namespace tern::trainer {
namespace {

int exit_code_of(const std::string& name, Console& console, const std::function<int()>& body) {
  const auto end = [&](const char* sentence, ExitCode code) {
    // The message may contain bytes of a file or of another process.
    if (*sentence != '\0') console.err.print(printable(name + ": " + sentence));
    return static_cast<int>(code);
  };
  try {
    return body();
  } catch (const Interrupted& stop) {
    return end(stop.what(), kInterrupted);
  } catch (const InputError& error) {
    return end(error.what(), kBadInput);
  } catch (const ResourceError& error) {
    return end(error.what(), kBadInput);
  } catch (const PeerError& error) {
    return end(error.what(), kLostPeer);
  } catch (const std::filesystem::filesystem_error& error) {
    return end((error.path1().string() + ": " + error.code().message()).c_str(), kBadInput);
  } catch (const std::bad_alloc&) {
    return end("out of memory; a smaller batch or model needs less", kBadInput);
  } catch (const std::system_error& error) {
    const bool no_threads = error.code() == std::errc::resource_unavailable_try_again;
    return no_threads
               ? end("the system gave no thread; free memory, or raise the limit (ulimit -u, ulimit -v)", kBadInput)
               : end(error.what(), kInternalError);
  } catch (const std::exception& error) {
    return end(error.what(), kInternalError);
  }
}

}  // namespace

void settle_output() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);  // if it is inherited as ignored, nobody can wait for a child
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0) ::open("/dev/null", O_RDWR);  // takes the lowest free number
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

int run_application(const std::string& name, Console& console, const std::function<int()>& body) {
  const int code = exit_code_of(name, console, body);
  console.finish(name, code);
  return code;
}

}  // namespace tern::trainer
