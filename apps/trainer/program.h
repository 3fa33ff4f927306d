#pragma once

#include <sys/types.h>

#include <string>

namespace tern {

/// This program's file, so that what it starts goes by the same name.
std::string program_path();

/// For a new process between fork and exec, where only what is safe in a signal handler may run: it leads a process
/// group of its own, ends with the thread of `parent` that started it, reads nothing, blocks no signal, and writes to these
/// descriptors; a negative one leaves what is there.
void settle_child(pid_t parent, int output, int errors);

}  // namespace tern
