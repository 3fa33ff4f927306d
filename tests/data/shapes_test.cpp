#include "tern/data/generated.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>

#include "tern/core/error.h"

namespace tern {
namespace {

std::vector<uint8_t> drawn(const Shapes& shapes, int64_t index) {
  std::vector<uint8_t> pixels(static_cast<size_t>(shapes.spec().numel()));
  EXPECT_EQ(shapes.read(index, pixels), index % kShapeKinds);
  return pixels;
}

TEST(Shapes, AreTheSameBytesOnEveryMachine) {
  auto checksum = crc32(0, nullptr, 0);
  const Shapes shapes(1, Split::train, 32);
  for (int64_t index = 0; index < 100; ++index) checksum = crc32(checksum, drawn(shapes, index).data(), 3072);
  EXPECT_EQ(checksum, 1788999945u);
}

TEST(Shapes, DependOnSeedSplitAndIndex) {
  const Shapes shapes(1, Split::train, 32);
  EXPECT_EQ(drawn(shapes, 0), drawn(Shapes(1, Split::train, 32), 0));
  EXPECT_NE(drawn(shapes, 0), drawn(Shapes(2, Split::train, 32), 0));
  EXPECT_NE(drawn(shapes, 0), drawn(Shapes(1, Split::test, 32), 0));
  EXPECT_NE(drawn(shapes, 0), drawn(shapes, kShapeKinds));
}

TEST(Shapes, MasksShowWhereTheShapeIs) {
  const Shapes small(5, Split::train, 32), large(5, Split::train, 64);
  for (int64_t index = 0; index < 5 * kShapeKinds; ++index) {
    SCOPED_TRACE(index);
    std::vector<uint8_t> mask(32 * 32), larger(64 * 64);
    small.read_mask(index, mask);
    large.read_mask(index, larger);
    // The picture differs from what lies beside the shape. Its gradient and its grain are the same on both sides.
    const auto pixels = drawn(small, index);
    double inside[3] = {}, beside[3] = {}, covered = 0, neighbours = 0;
    for (int y = 0; y < 32; ++y)
      for (int x = 0; x < 32; ++x) {
        const auto near = [&](int dy, int dx) {
          const int row = y + dy, column = x + dx;
          return 0 <= row && row < 32 && 0 <= column && column < 32 &&
                 mask[static_cast<size_t>(row * 32 + column)] == 1;
        };
        const auto at = static_cast<size_t>(y * 32 + x);
        const bool in = mask[at] == 1, next = !in && (near(-2, 0) || near(2, 0) || near(0, -2) || near(0, 2));
        ASSERT_LE(mask[at], 1);
        covered += in;
        neighbours += next;
        for (size_t c = 0; c < 3; ++c) {
          if (in) inside[c] += pixels[3 * at + c];
          if (next) beside[c] += pixels[3 * at + c];
        }
      }
    ASSERT_GT(covered, 20);
    ASSERT_GT(neighbours, 10);
    double most = 0;
    for (size_t c = 0; c < 3; ++c) most = std::max(most, std::abs(inside[c] / covered - beside[c] / neighbours));
    EXPECT_GT(most, 12);
    const auto in_larger = static_cast<double>(std::ranges::count(larger, 1));
    EXPECT_NEAR(in_larger / 4, covered, 0.15 * covered + 4);
  }
  std::vector<uint8_t> wrong(3 * 32 * 32);
  EXPECT_THROW(small.read_mask(0, wrong), Error);
  EXPECT_THROW(small.read_mask(20000, std::span(wrong).first(1024)), Error);
}

TEST(Shapes, AreAsManyAndAsLargeAsTheySay) {
  const Shapes small(1, Split::train, 32), large(1, Split::test, 224);
  EXPECT_EQ(small.spec(), (ImageSpec{.channels = 3, .height = 32, .width = 32, .classes = 10}));
  EXPECT_EQ(large.spec(), (ImageSpec{.channels = 3, .height = 224, .width = 224, .classes = 10}));
  EXPECT_EQ(small.size(), 20000);
  EXPECT_EQ(large.size(), 400);
  std::vector<uint8_t> pixels(3072);
  EXPECT_THROW(small.read(20000, pixels), Error);
  EXPECT_THROW(small.read(-1, pixels), Error);
  EXPECT_THROW(large.read(0, pixels), Error);
}

/// Except for its grain, a shape is the same picture at every size. So means of 7×7 pixels of the large one are near
/// the pixels of the small one.
TEST(Shapes, LookAlikeAtEverySize) {
  const Shapes small(3, Split::train, 32), large(3, Split::train, 224);
  for (int64_t index = 0; index < kShapeKinds; ++index) {
    const auto few = drawn(small, index), many = drawn(large, index);
    double distance = 0;
    for (size_t y = 0; y < 32; ++y)
      for (size_t x = 0; x < 32; ++x) {
        double mean = 0;
        for (size_t i = 0; i < 49; ++i) mean += many[((y * 7 + i / 7) * 224 + x * 7 + i % 7) * 3] / 49.0;
        distance += std::abs(mean - few[(y * 32 + x) * 3]) / 1024;
      }
    EXPECT_LT(distance, 25) << index;
  }
}

}  // namespace
}  // namespace tern
