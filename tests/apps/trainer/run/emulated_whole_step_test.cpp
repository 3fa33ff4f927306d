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

TEST_F(EmulatedNcclWholeStep, IsIssuedOneByOneIfNcclCannotRecord) {
  const auto recorded = events(settings_);
  const RefusedCaptures refused;
  auto found = events(settings_);
  const auto notes = std::ranges::stable_partition(found, [](const auto& event) { return event["event"] != "note"; });
  ASSERT_EQ(notes.size(), 1u);
  const std::string note = notes.front()["text"];
  EXPECT_TRUE(names(note, "none could be recorded: ")) << note;
  EXPECT_TRUE(names(note, "NCCL: emulated error")) << note;
  found.pop_back();
  EXPECT_EQ(found, recorded);
}

}  // namespace
}  // namespace tern::test
