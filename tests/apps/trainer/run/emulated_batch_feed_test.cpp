#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <vector>

#include "tern/core/cuda/runtime.h"
#include "tern/data/dataset.h"
#include "tern/trainer/run/batch_feed.h"

namespace tern {
namespace {

using namespace trainer;
using namespace std::chrono_literals;

constexpr Device kGpu{DeviceType::cuda, 0};

/// A feed whose images the device makes, after two batches: the memory of both is there.
struct EmulatedBatchFeed : testing::TestWithParam<bool> {
  EmulatedBatchFeed() {
    loader.start({});
    feed.next();
    feed.next();
  }
  ~EmulatedBatchFeed() override { *ended = true; }

  /// Puts work into the kernels' stream that goes on until `ended`.
  void begin_step() { emulation::add(*cuda::enter(kGpu), ended); }

  const MemoryDataset data{
      {.channels = 1, .height = 2, .width = 2, .classes = 2}, std::vector<uint8_t>(32, 5), std::vector<uint8_t>(8, 1)};
  const DeviceImages images{data, {}, kGpu, GetParam()};
  DataLoader loader{
      data,
      {.size = data.size()},
      {.batch_size = 2, .threads = 0, .images = images.needed(), .labels = images.labels(), .device = kGpu}};
  BatchFeed feed{loader, kGpu, DType::f32, &images};
  const std::shared_ptr<std::atomic<bool>> ended = std::make_shared<std::atomic<bool>>(false);
};

TEST_P(EmulatedBatchFeed, MakesTheNextBatchWhileAStepRuns) {
  begin_step();
  auto prefetch = std::async(std::launch::async, [&] { feed.prefetch(); });
  EXPECT_EQ(prefetch.wait_for(30s), std::future_status::ready);
  *ended = true;
}

TEST_P(EmulatedBatchFeed, WritesIntoABatchOnceItsStepHasEnded) {
  begin_step();
  feed.next();
  auto prefetch = std::async(std::launch::async, [&] { feed.prefetch(); });
  EXPECT_EQ(prefetch.wait_for(200ms), std::future_status::timeout);
  *ended = true;
  prefetch.get();
}

INSTANTIATE_TEST_SUITE_P(Images, EmulatedBatchFeed, testing::Bool(),
                         [](const auto& given) { return given.param ? "resident" : "brought"; });

}  // namespace
}  // namespace tern
