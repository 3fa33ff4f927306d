#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <string>

#include "tern/trainer/rank/console.h"

namespace tern::trainer {

/// Call this first in a program. Afterwards, writing to a closed pipe or beyond the limit of a file's size (ulimit -f)
/// is an error and not a signal, and the ends of child processes can be waited for. A closed stdin, stdout or stderr
/// becomes /dev/null, so that no other file gets its number.
void settle_output();

/// Prepares a new process between fork and exec; calls only what is safe in a signal handler. The process leads its own
/// process group, ends with the thread of `parent` that started it, and reads nothing. It blocks exactly the signals in
/// `blocked`. It writes to the descriptors `output` and `errors`; a negative one changes nothing.
void settle_child(pid_t parent, int output, int errors, const sigset_t& blocked);

/// tern::run_application with a console of the caller. Finishes the console.
int run_application(const std::string& name, Console& console, const std::function<int()>& body);

}  // namespace tern::trainer
