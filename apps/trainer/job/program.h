#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <string>

#include "tern/trainer/report/console.h"

namespace tern::trainer {

/// This program's file, so that what it starts goes by the same name.
std::string program_path();

/// First of all in a program: writing where nobody reads any more is an error and no signal, and what was closed of
/// stdin, stdout and stderr is /dev/null, so that no file takes its place.
void settle_output();

/// For a new process between fork and exec, where only what is safe in a signal handler may run: it leads a process
/// group of its own, ends with the thread of `parent` that started it, reads nothing, blocks the signals in `blocked`
/// alone, and writes to these descriptors; a negative one leaves what is there.
void settle_child(pid_t parent, int output, int errors, const sigset_t& blocked);

/// Starts this program anew, once, so that OpenMP's threads sleep after a short spin where the environment does not say
/// otherwise (OMP_WAIT_POLICY, GOMP_SPINCOUNT): threads that spin for long cost up to ten times on shared cores, and
/// OpenMP reads its policy only as it is loaded. Call first in `main`; returns where the spin count is set, or the
/// program cannot be started again.
void wait_passively(char** argv);

/// tern::run_application with a console of the caller's, which it finishes.
int run_application(const std::string& name, Console& console, const std::function<int()>& body);

}  // namespace tern::trainer
