#include "tern/trainer/run/batch_feed.h"

#include <gtest/gtest.h>

#include "tern/data/dataset.h"
#include "tests/support/cuda.h"

namespace tern {
namespace {

using namespace trainer;

TEST(CudaBatchFeed, ABatchHoldsWhenTheNextIsDropped) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  const MemoryDataset data({.channels = 1, .height = 1, .width = 1, .classes = 4}, {10, 11, 12, 13}, {0, 1, 2, 3});
  const Sampler in_order{.size = 4, .shuffle = false};
  DataLoader loader(data, in_order, {.batch_size = 1, .threads = 0});
  loader.start({});
  BatchFeed feed(loader, {DeviceType::cuda, 0}, DType::f32);
  const auto first = feed.next();
  feed.prefetch();
  feed.reset();  // the kernels that read the first batch may still have to run
  loader.start({.epoch = 0, .batch = 2});
  const auto third = feed.next();
  EXPECT_EQ(first->indices().to_vector<int64_t>(), std::vector<int64_t>{0});
  EXPECT_EQ(third->indices().to_vector<int64_t>(), std::vector<int64_t>{2});
  feed.prefetch();
  EXPECT_EQ(feed.next()->indices().to_vector<int64_t>(), std::vector<int64_t>{3});
  EXPECT_EQ((*third)["label"].to_vector<int64_t>(), std::vector<int64_t>{2});
}

}  // namespace
}  // namespace tern
