#include "tern/data/adapt_image.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tern/data/generated.h"

namespace tern {
namespace {

constexpr int kPaperSide = static_cast<int>(kDigitSide);
constexpr ImageSpec kPaper = {.channels = 1, .height = kPaperSide, .width = kPaperSide, .classes = 10};

/// Digit `index` of the test split as a picture on black.
Image test_digit(int64_t index) {
  Image image{.width = kPaperSide, .height = kPaperSide, .values = std::vector<uint8_t>(kPaperSide * kPaperSide)};
  draw_digit(7, Split::test, index, image.values);
  return image;
}

TEST(DigitImage, TakesAnMnistPictureAsItIs) { EXPECT_EQ(adapt_digit(test_digit(3), kPaper), test_digit(3).values); }

TEST(DigitImage, CentersTheInkInTheBoxWhicheverWayItWasWritten) {
  Image page{.width = 300, .height = 200, .values = std::vector<uint8_t>(300 * 200, 230)};
  for (int y = 20; y < 100; ++y)
    for (int x = 30; x < 50; ++x) page.values[static_cast<size_t>(y * 300 + x)] = 40;
  Image board = page;
  for (auto& grey : board.values) grey = static_cast<uint8_t>(255 - grey);
  const auto adapted = adapt_digit(page, kPaper);
  EXPECT_EQ(adapt_digit(board, kPaper), adapted);
  // An ink area of 20 × 80 becomes 5 × 20, and its centre is at the centre of the image.
  for (int y = 0; y < kPaperSide; ++y)
    for (int x = 0; x < kPaperSide; ++x) {
      const bool ink = y >= 4 && y < 24 && x >= 12 && x < 17;
      EXPECT_EQ(adapted[static_cast<size_t>(y * kPaperSide + x)], ink ? 255 : 0) << x << ' ' << y;
    }
}

TEST(DigitImage, BlankPaperIsBlack) {
  const Image blank{.width = 50, .height = 40, .values = std::vector<uint8_t>(50 * 40, 250)};
  EXPECT_EQ(std::ranges::max(adapt_digit(blank, kPaper)), 0);
}

}  // namespace
}  // namespace tern
