#include <gtest/gtest.h>

#include "tests/dist/comm/nccl.h"
#include "tests/dist/comm/transports.h"

namespace tern::test {
namespace {

// The ranks know both kinds of operations already, so they do not compare these. NCCL itself may also hang or give
// wrong sums; the emulation reports an error.
TEST(EmulatedNccl, AnErrorOfItEndsTheJob) {
  const Deadlines deadlines = {.dead_after = std::chrono::seconds(1)};
  for (const TransportKind& kind : transport_kinds()) {
    SCOPED_TRACE(kind.name);
    const auto errors = with_nccl(kind.make(2, deadlines), deadlines, [](Communicator& c) {
      Tensor x[2] = {Tensor::zeros({5}, {.device = {DeviceType::cuda, c.rank()}}),
                     Tensor::zeros({6}, {.device = {DeviceType::cuda, c.rank()}})};
      for (Tensor& each : x) c.all_reduce(each).wait();
      Tensor& unlike = x[c.rank()];
      c.all_reduce(unlike).wait();  // of the rank that comes last, this throws
      unlike.to(Device{});
      c.confirm();
    });
    EXPECT_EQ(errors[0], errors[1]);
    EXPECT_TRUE(names(errors[0], "all_reduce_sum 5 of ")) << errors[0];
    EXPECT_TRUE(names(errors[0], "NCCL: emulated error")) << errors[0];
  }
}

}  // namespace
}  // namespace tern::test
