#include "tern/data/image.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

// The upright picture, and how a camera stores it in each of the eight orientations of Exif 2.32, table 6.
const Image kSeen = {.width = 3, .height = 2, .values = {1, 2, 3, 4, 5, 6}};
const Image kStored[] = {
    {.width = 3, .height = 2, .values = {1, 2, 3, 4, 5, 6}}, {.width = 3, .height = 2, .values = {3, 2, 1, 6, 5, 4}},
    {.width = 3, .height = 2, .values = {6, 5, 4, 3, 2, 1}}, {.width = 3, .height = 2, .values = {4, 5, 6, 1, 2, 3}},
    {.width = 2, .height = 3, .values = {1, 4, 2, 5, 3, 6}}, {.width = 2, .height = 3, .values = {3, 6, 2, 5, 1, 4}},
    {.width = 2, .height = 3, .values = {6, 3, 5, 2, 4, 1}}, {.width = 2, .height = 3, .values = {4, 1, 5, 2, 6, 3}}};

TEST(Image, IsTurnedUprightFromEveryOrientation) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Image image = upright(kStored[orientation - 1].view(), orientation);
    EXPECT_EQ(image.width, 3) << orientation;
    EXPECT_EQ(image.height, 2) << orientation;
    EXPECT_EQ(image.values, kSeen.values) << orientation;
  }
}

TEST(Image, KeepsTheColoursOfAPixelTogetherAndLeavesWhatStandsBetween) {
  const uint8_t stored[] = {1, 2, 3, 0, 4, 5, 6, 0};
  const ImageView view{.values = stored, .width = 2, .height = 1, .channels = 3, .pixel_bytes = 4, .row_bytes = 8};
  EXPECT_EQ(upright(view, 1).values, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(upright(view, 6).values, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(upright(view, 8).values, (std::vector<uint8_t>{4, 5, 6, 1, 2, 3}));
}

TEST(Image, TheMiddleHasTheProportionsAskedFor) {
  Image wide{.width = 5, .height = 2, .values = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}};
  EXPECT_EQ(upright(middle(wide.view(), 7, 7), 1).values, (std::vector<uint8_t>{1, 2, 6, 7}));
  EXPECT_EQ(upright(middle(wide.view(), 1, 2), 1).values, (std::vector<uint8_t>{2, 7}));
  EXPECT_EQ(upright(middle(wide.view(), 10, 4), 1).values, wide.values);
  EXPECT_EQ(upright(middle(wide.view(), 5, 1), 1).values, (std::vector<uint8_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(upright(middle(wide.view(), 1, 1000), 1).values, (std::vector<uint8_t>{2, 7})) << "one pixel at least";
}

}  // namespace
}  // namespace tern
