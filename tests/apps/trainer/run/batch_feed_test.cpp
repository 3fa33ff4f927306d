#include "tern/trainer/run/batch_feed.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tern/data/dataset.h"
#include "tests/support/cuda.h"

namespace tern {
namespace {

using namespace trainer;

/// Sequences of these lengths; element t of sample i is 10 · i + t.
class Sequences final : public Dataset {
 public:
  explicit Sequences(std::vector<int64_t> lengths) : lengths_(std::move(lengths)) {}

  int64_t size() const override { return std::ssize(lengths_); }
  std::vector<Field> fields() const override { return {{.name = "frames", .kind = FieldKind::sequence}}; }
  int64_t length(int64_t index) const override { return lengths_[static_cast<size_t>(index)]; }
  Sample sample(int64_t index) const override {
    std::vector<float> frames(static_cast<size_t>(length(index)));
    std::iota(frames.begin(), frames.end(), static_cast<float>(10 * index));
    return {{"frames", Tensor::from({length(index)}, frames)}};
  }

 private:
  std::vector<int64_t> lengths_;
};

TEST(CudaBatchFeed, ShorterSequencesUseTheMemoryOfLongerOnes) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  const Sequences data({5, 4, 3, 0, 6, 2});
  DataLoader loader(data, {.size = data.size()}, {.batch_size = 1, .threads = 0});
  BatchFeed feed(loader, {DeviceType::cuda, 0}, DType::f32);
  std::vector<const void*> memory;
  for (int64_t i = 0; i < data.size(); ++i) {
    const auto batch = feed.next();
    const Tensor& frames = (*batch)["frames"];
    EXPECT_EQ(frames.shape(), (Shape{1, data.length(i)}));
    EXPECT_EQ(frames.to_vector<float>(), data.sample(i).at("frames").to_vector<float>());
    memory.push_back(frames.raw_data());
  }
  EXPECT_EQ(memory[2], memory[0]);
  EXPECT_EQ(memory[5], memory[1]);
}

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
