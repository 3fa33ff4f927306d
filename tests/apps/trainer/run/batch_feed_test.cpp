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

TEST(CudaBatchFeed, ImagesHaveSpareChannels) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  constexpr Device kDevice{DeviceType::cuda, 0};
  const MemoryDataset data({.channels = 1, .height = 1, .width = 2, .classes = 2}, {255, 0, 0, 255}, {0, 1});
  const DeviceImages images(data, {.mean = {0}, .deviation = {1}}, kDevice, true, 4);
  DataLoader loader(
      data, {.size = 2},
      {.batch_size = 2, .threads = 0, .images = images.needed(), .labels = images.labels(), .device = kDevice});
  loader.start({});
  BatchFeed feed(loader, kDevice, DType::bf16, &images);
  const auto batch = feed.next();
  EXPECT_EQ((*batch)["image"].shape(), (Shape{2, 4, 1, 2}));
  EXPECT_EQ((*batch)["image"].to_vector<float>(), (std::vector<float>{1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}));
}

TEST(CudaBatchFeed, TheDeviceMakesTheBitsOfTheLoadersImages) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  constexpr Device kDevice{DeviceType::cuda, 0};
  const ImageSpec spec{.channels = 3, .height = 9, .width = 8, .classes = 5};
  std::vector<uint8_t> pixels(static_cast<size_t>(10 * spec.numel())), labels(10);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * i + i / 7);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<uint8_t>(i % 5);
  const MemoryDataset data(spec, pixels, labels);
  const Transform transform{.pad = 1, .crop_height = 7, .random_crop = true, .random_flip = true, .contrast_high = 2};
  const Sampler sampler{.size = data.size(), .shuffle = true};
  for (const auto& [resident, precision] :
       {std::pair{true, DType::f32}, {true, DType::bf16}, {false, DType::f32}, {false, DType::bf16}}) {
    const DeviceImages images(data, transform, kDevice, resident);
    EXPECT_EQ(images.needed(), resident ? ImageForm::none : ImageForm::pixels);
    LoaderOptions options{.batch_size = 4, .drop_last = false, .threads = 2, .transform = transform};
    DataLoader plain(data, sampler, options);
    options.images = images.needed();
    options.labels = images.labels();
    EXPECT_EQ(options.labels != nullptr, resident);
    options.device = kDevice;
    DataLoader loader(data, sampler, options);
    BatchFeed feed(loader, kDevice, precision, &images);
    for (const int64_t epoch : {0, 1}) {
      plain.start({.epoch = epoch});
      loader.start({.epoch = epoch});
      while (const auto expected = plain.next()) {
        const auto found = feed.next();
        ASSERT_TRUE(found);
        feed.prefetch();
        EXPECT_EQ((*found)["label"].to_vector<int64_t>(), (*expected)["label"].to_vector<int64_t>());
        EXPECT_EQ((*found)["image"].shape(), (*expected)["image"].shape());
        EXPECT_EQ((*found)["image"].dtype(), precision);
        EXPECT_EQ((*found)["image"].to_vector<float>(), (*expected)["image"].to(precision).to_vector<float>());
      }
      EXPECT_FALSE(feed.next());
    }
  }
}

}  // namespace
}  // namespace tern
