#pragma once

namespace tern {

/// Starts this program anew, once, so that OpenMP's threads sleep after a short spin where the environment does not say
/// otherwise (OMP_WAIT_POLICY, GOMP_SPINCOUNT): threads that spin for long cost up to ten times on shared cores, and
/// OpenMP reads its policy only as it is loaded. Call first in `main`; returns where the spin count is set, or the
/// program cannot be started again.
void wait_passively(char** argv);

}  // namespace tern
