#include "tern/data/generated.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>

namespace tern {
namespace {

using Pixels = std::array<uint8_t, kDigitSide * kDigitSide>;

Pixels drawn(uint64_t seed, Split split, int64_t index) {
  Pixels pixels;
  draw_digit(seed, split, index, pixels);
  return pixels;
}

TEST(Digits, AreTheSameBytesOnEveryMachine) {
  auto checksum = crc32(0, nullptr, 0);
  for (int64_t index = 0; index < 100; ++index) checksum = crc32(checksum, drawn(1, Split::train, index).data(), 784);
  EXPECT_EQ(checksum, 2136436750u);
}

TEST(Digits, DependOnSeedSplitAndIndex) {
  EXPECT_NE(drawn(1, Split::train, 0), drawn(2, Split::train, 0));
  EXPECT_NE(drawn(1, Split::train, 0), drawn(1, Split::test, 0));
  EXPECT_NE(drawn(1, Split::train, 0), drawn(1, Split::train, 10));
}

TEST(Digits, AreBalancedAndMadeInParallelAsOneByOne) {
  const MemoryDataset digits = make_digits(4, Split::test);
  EXPECT_EQ(digits.spec(), (ImageSpec{.channels = 1, .height = 28, .width = 28, .classes = 10}));
  std::array<int64_t, 10> counts{};
  Pixels pixels;
  for (int64_t index = 0; index < digits.size(); ++index) {
    ++counts[static_cast<size_t>(digits.read(index, pixels))];
    ASSERT_EQ(pixels, drawn(4, Split::test, index)) << index;
  }
  for (const int64_t found : counts) EXPECT_EQ(found, digits.size() / 10);
}

TEST(Digits, AreInkOnAnEmptyPageWithinItsEdges) {
  for (int64_t index = 0; index < 2000; ++index) {
    const Pixels pixels = drawn(9, Split::train, index);
    const auto inked = std::ranges::count_if(pixels, [](uint8_t value) { return value > 100; });
    EXPECT_GT(inked, 12) << index;
    EXPECT_LT(inked, 300) << index;
    const auto corner = pixels[0];
    EXPECT_LT(corner, 100) << index;
  }
}

}  // namespace
}  // namespace tern
