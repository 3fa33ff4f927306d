#pragma once

#include <string>

namespace tern {

/// The path of this program's file, so that the processes that it starts have the same name.
std::string program_path();

/// The folder of this program's file, also if the file was replaced while it runs.
std::string program_folder();

/// The name of this machine.
std::string host_name();

/// Lets OpenMP's threads sleep after a short spin. Call it first in `main`. Threads that spin for long make a training
/// program up to ten times slower on shared cores. OpenMP reads its policy only when it is loaded, so the call restarts
/// this program once, with OMP_WAIT_POLICY and GOMP_SPINCOUNT set. It returns if the spin count is set, or if the
/// restart fails. Without this call and these variables, `parallel_for` prints a note after two seconds.
void wait_passively(int argc, char** argv);

}  // namespace tern
