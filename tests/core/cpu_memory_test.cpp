#include "tern/core/device.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "tern/core/tensor.h"

namespace tern {
namespace {

/// Makes tensors of different sizes. It holds some of them while others come and go, as a training step does.
void one_step() {
  std::vector<Tensor> held;
  for (int64_t size : {1, 100, 4096, 100000, 3, 4096}) {
    held.push_back(Tensor::zeros({size}));
    const Tensor scratch = Tensor::empty({2 * size, 3});
  }
}

TEST(CpuMemory, TakesNothingFromTheSystemInSteadyState) {
  one_step();
  const auto before = cpu_memory().statistics();
  for (int step = 0; step < 100; ++step) one_step();
  const auto after = cpu_memory().statistics();
  EXPECT_EQ(after.system_allocations, before.system_allocations);
  EXPECT_EQ(after.reserved, before.reserved);
  EXPECT_EQ(after.in_use, before.in_use);
}

TEST(CpuMemory, CountsWhatTensorsHold) {
  const int64_t before = cpu_memory().statistics().in_use;
  {
    const Tensor tensor = Tensor::empty({1000, 1000});
    const Tensor view = tensor.slice(0, 10);
    const int64_t held = cpu_memory().statistics().in_use - before;
    EXPECT_GE(held, 4000000);
    EXPECT_LE(held, 4500000) << "a large block wastes less than 256 KiB";
    EXPECT_GE(cpu_memory().statistics().peak_in_use, before + held);
    EXPECT_GE(cpu_memory().statistics().reserved, before + held);
  }
  EXPECT_EQ(cpu_memory().statistics().in_use, before);
}

TEST(CpuMemory, AlignsEveryBlock) {
  for (int64_t size = 0; size < 3000; size += 7) {
    const Tensor tensor = Tensor::empty({size}, {.dtype = DType::u8});
    ASSERT_EQ(reinterpret_cast<uintptr_t>(tensor.raw_data()) % 64, 0u) << size;
  }
}

TEST(CpuMemory, KeepsTensorsOfAllSizesApart) {
  constexpr size_t kHeld = 20;
  std::vector<Tensor> held(kHeld);
  std::vector<float> values(kHeld);
  std::mt19937 draw(1);
  for (int i = 0; i < 500; ++i) {
    const size_t at = draw() % kHeld;
    for (float value : held[at].defined() ? held[at].span<float>() : std::span<float>())
      ASSERT_EQ(value, values[at]) << "after " << i << " tensors";
    values[at] = static_cast<float>(i);
    held[at] = {};
    const auto columns = static_cast<int64_t>(1 + draw() % 3);
    held[at] = Tensor::full({int64_t{1} << (4 + draw() % 14), columns}, i);
  }
}

TEST(CpuMemory, ServesThreadsAtOnce) {
  const int64_t before = cpu_memory().statistics().in_use;
  std::vector<std::thread> threads;
  std::vector<int> intact(4, 1);
  for (size_t t = 0; t < intact.size(); ++t)
    threads.emplace_back([&intact, t] {
      for (int i = 0; i < 200; ++i) {
        const int64_t size = i % 10 == 0 ? 70'000 : 1000;  // large blocks are cut and joined
        const Tensor tensor = Tensor::full({size}, static_cast<double>(t));
        for (float value : tensor.span<float>()) intact[t] &= value == static_cast<float>(t);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(intact, std::vector<int>(4, 1));
  EXPECT_EQ(cpu_memory().statistics().in_use, before);
}

}  // namespace
}  // namespace tern
