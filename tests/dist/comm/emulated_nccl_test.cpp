#include <gtest/gtest.h>
#include <nccl.h>

#include "tern/dist/comm/failure.h"
#include "tern/kernels/recording.h"
#include "tests/dist/comm/nccl.h"
#include "tests/dist/comm/transports.h"
#include "tests/support/message_of.h"

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

/// The first of two operations passes its deadline while NCCL still works on the second one's call. The recording keeps
/// NCCL from its end, and so the second one's memory from the next tensor of its size.
TEST(EmulatedNccl, KeepsTheTensorsOfAnOperationThatFailsWhileItStarts) {
  constexpr int64_t kSecond = 100'000;
  const Deadlines deadlines = {.operation = std::chrono::seconds(2)};
  const auto errors = with_nccl(make_in_process(2, deadlines), deadlines, [&](Communicator& c) {
    const TensorOptions here = {.device = {DeviceType::cuda, c.rank()}};
    Tensor first = Tensor::zeros({5}, here), second = Tensor::zeros({kSecond}, here);
    for (Tensor& each : {std::ref(first), std::ref(second)}) {
      c.all_reduce(each).wait();
      each.to(Device{});
    }
    const auto recording = record(here.device, [&] { c.all_reduce(first).wait(); });
    c.barrier().wait();
    if (c.rank() == 1) {
      while (c.state().failure.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    emulation::nccl_stays_busy_with = kSecond;
    const Work under_way = c.all_reduce(first);
    const std::string cause = message_of<PeerError>([&] { c.all_reduce(second).wait(); });
    emulation::nccl_stays_busy_with = 0;
    const void* const memory = std::exchange(second, Tensor()).raw_data();
    EXPECT_NE(Tensor::empty({kSecond}, here).raw_data(), memory);
    throw Error(cause);
  });
  EXPECT_TRUE(names(errors[0], "rank 1")) << errors[0];
}

}  // namespace
}  // namespace tern::test
