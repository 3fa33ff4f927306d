#include "tern/apps/trainer/wait_policy.h"

#include <unistd.h>

#include <cstdlib>

#include "tern/apps/trainer/program.h"

namespace tern {

void wait_passively(char** argv) {
  // Some microseconds of spinning: a wait between two loops of one training step is mostly shorter than a sleep.
  constexpr const char* kSpins = "1000";
  if (std::getenv("GOMP_SPINCOUNT")) return;
  if (setenv("OMP_WAIT_POLICY", "PASSIVE", 0) != 0 || setenv("GOMP_SPINCOUNT", kSpins, 0) != 0) return;
  execv(program_path().c_str(), argv);
}

}  // namespace tern
