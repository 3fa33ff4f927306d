#include <nccl.h>

#include "tests/apps/trainer/run/whole_step.h"

namespace tern::test {
namespace {

using EmulatedNcclWholeStep = NcclCudaWholeStep;

/// While it lives, NCCL records nothing.
struct RefusedCaptures {
  RefusedCaptures() { emulation::nccl_refuses_captures = true; }
  ~RefusedCaptures() { emulation::nccl_refuses_captures = false; }
};

// Every call after an error of NCCL fails, so that training cannot go on.
TEST_F(EmulatedNcclWholeStep, EndsIfNcclFailsInTheRecording) {
  const RefusedCaptures refused;
  for (const std::string& error : train(settings_)) {
    EXPECT_TRUE(names(error, "NCCL: emulated error")) << error;
    EXPECT_TRUE(names(error, "in a recording")) << error;
  }
  settings_.cuda_graph = false;
  EXPECT_EQ(train(settings_), std::vector<std::string>(2));
}

}  // namespace
}  // namespace tern::test
