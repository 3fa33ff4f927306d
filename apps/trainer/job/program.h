#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <string>

#include "tern/trainer/report/console.h"

namespace tern::trainer {

/// The path of this program's file, so that the processes that it starts have the same name.
std::string program_path();

/// Call this first in a program. Afterwards, writing to a closed pipe is an error and not a signal. A closed stdin,
/// stdout or stderr becomes /dev/null, so that no other file gets its number.
void settle_output();

/// Prepares a new process between fork and exec; calls only what is safe in a signal handler. The process leads its own
/// process group, ends with the thread of `parent` that started it, and reads nothing. It blocks exactly the signals in
/// `blocked`. It writes to the descriptors `output` and `errors`; a negative one changes nothing.
void settle_child(pid_t parent, int output, int errors, const sigset_t& blocked);

/// Restarts this program once, so that OpenMP's threads sleep after a short spin, unless the environment sets this
/// (OMP_WAIT_POLICY, GOMP_SPINCOUNT). Threads that spin for long make programs up to ten times slower on shared cores.
/// OpenMP reads its policy only when it is loaded. Call this first in `main`. Returns if the spin count is set, or if
/// the restart fails.
void wait_passively(char** argv);

/// tern::run_application with a console of the caller. Finishes the console.
int run_application(const std::string& name, Console& console, const std::function<int()>& body);

}  // namespace tern::trainer
