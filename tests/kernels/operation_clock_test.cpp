#include "tern/kernels/operation_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tern/kernels/elementwise.h"

namespace tern {
namespace {

TEST(OperationClock, CountsWhatTheThreadDoesFromOneBeginToTheNext) {
  const Tensor x = Tensor::full({4}, -1);
  Tensor y = Tensor::empty_like(x);
  const auto clock = make_operation_clock({});
  kernels::relu(x, y);
  {
    const OperationTiming timing(clock.get());
    kernels::relu(x, y);
    kernels::scale(x, 2, y);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    {
      const OperationTiming pause(nullptr);
      kernels::add(x, x, y);
    }
    kernels::relu(x, y);
    std::thread([&] { kernels::tanh(x, y); }).join();
  }
  kernels::sigmoid(x, y);
  const auto times = clock->times();
  ASSERT_EQ(times.size(), 2);
  EXPECT_EQ(times[0].name, "scale");
  EXPECT_EQ(times[0].calls, 1);
  EXPECT_GE(times[0].seconds, 5e-3) << "what comes between counts for it";
  EXPECT_EQ(times[1].name, "relu");
  EXPECT_EQ(times[1].calls, 2);
}

}  // namespace
}  // namespace tern
