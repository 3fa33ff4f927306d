#include "tern/data/dataset.h"

#include <gtest/gtest.h>

#include "tern/core/error.h"

namespace tern {
namespace {

constexpr ImageSpec kSpec = {.channels = 3, .height = 1, .width = 1, .classes = 2};

TEST(MemoryDataset, ReadsWhatItWasGiven) {
  const MemoryDataset data(kSpec, {1, 2, 3, 4, 5, 6}, {0, 1});
  std::vector<uint8_t> pixels(3);
  EXPECT_EQ(data.read(1, pixels), 1);
  EXPECT_EQ(pixels, (std::vector<uint8_t>{4, 5, 6}));
  EXPECT_THROW(data.read(2, pixels), Error);
  EXPECT_THROW(data.read(-1, pixels), Error);
  pixels.pop_back();
  EXPECT_THROW(data.read(0, pixels), Error);
}

TEST(MemoryDataset, RefusesSizesAndLabelsThatDisagree) {
  EXPECT_THROW(MemoryDataset(kSpec, {1, 2, 3, 4}, {0, 1}), Error);
  EXPECT_THROW(MemoryDataset(kSpec, {1, 2, 3}, {2}), Error);
}

}  // namespace
}  // namespace tern
