#include "tern/kernels/operation_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>

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
  EXPECT_GE(times[0].seconds, times[1].seconds);
  // Another process may take the processor while relu runs, so either operation may come first.
  const auto& [scale, relu] = times[0].name == "scale" ? std::pair(times[0], times[1]) : std::pair(times[1], times[0]);
  EXPECT_EQ(scale.name, "scale");
  EXPECT_EQ(scale.calls, 1);
  EXPECT_GE(scale.seconds, 5e-3) << "what comes between counts for it";
  EXPECT_EQ(relu.name, "relu");
  EXPECT_EQ(relu.calls, 2);
}

}  // namespace
}  // namespace tern
