#pragma once

namespace tern {

/// Starts this program anew, once, with OMP_WAIT_POLICY=PASSIVE where the environment does not say: threads that spin
/// while they wait cost up to ten times on shared cores, and OpenMP reads the policy only as it is loaded. Call first
/// in `main`; returns where the policy is set, or the program cannot be started again.
void wait_passively(char** argv);

}  // namespace tern
