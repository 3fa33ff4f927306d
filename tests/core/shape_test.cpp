#include "tern/core/shape.h"

#include <gtest/gtest.h>

#include "tern/core/error.h"

namespace tern {
namespace {

TEST(Shape, CountsElementsAndIndexesFromBothEnds) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.numel(), 24);
  EXPECT_EQ(shape.numel_from(1), 12);
  EXPECT_EQ(shape[-1], 4);
  EXPECT_EQ(to_string(shape), "[2, 3, 4]");
  EXPECT_THROW(shape[3], Error);
}

TEST(Shape, RefusesMoreElementsThanCanBeCounted) {
  EXPECT_THROW(Shape({int64_t{1} << 40, int64_t{1} << 40}), Error);
  EXPECT_THROW(Shape({0, int64_t{1} << 40, int64_t{1} << 40}), Error) << "numel_from(1) counts them, too";
  EXPECT_EQ(Shape({int64_t{1} << 24, 0, int64_t{1} << 24}).numel(), 0);
}

TEST(Shape, BroadcastsAlignedAtTheLastDimension) {
  EXPECT_EQ(broadcast({4, 1, 3}, {2, 1}, "add"), (Shape{4, 2, 3}));
  try {
    broadcast({4, 3}, {2}, "add");
    FAIL() << "shapes that do not broadcast were taken";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "add: shapes [4, 3] and [2] do not broadcast");
  }
}

}  // namespace
}  // namespace tern
