#include "tern/data/image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/pictures.h"

namespace tern {
namespace {

/// The weight of source pixel `place` in target pixel `i`, on one axis. If the axis shrinks, it is the share of the
/// target pixel that the source pixel covers. If it grows, it is the weight of linear interpolation between the two
/// nearest source pixels.
double weight(int place, int i, int from, int to) {
  const double scale = static_cast<double>(from) / to;
  if (to >= from) {
    const double center = std::clamp((i + 0.5) * scale - 0.5, 0.0, from - 1.0);
    return std::max(0.0, 1 - std::abs(place - center));
  }
  return std::max(0.0, std::min((i + 1) * scale, place + 1.0) - std::max(i * scale, 1.0 * place)) / scale;
}

double expected(const Image& image, int x, int y, int channel, int width, int height) {
  double sum = 0;
  for (int v = 0; v < image.height; ++v)
    for (int u = 0; u < image.width; ++u)
      sum += weight(u, x, image.width, width) * weight(v, y, image.height, height) * image.at(u, v, channel);
  return sum;
}

TEST(Resize, IsTheMeanOfWhatAPixelCoversOrLinearBetweenCentres) {
  const std::pair<int, int> sizes[] = {{1, 1}, {2, 3}, {7, 5}, {16, 16}, {23, 31}};
  for (const auto& [from_width, from_height] : sizes)
    for (const auto& [width, height] : sizes) {
      const Image image = test_picture(from_width, from_height, from_width);
      const Image resized = resize(image.view(), width, height);
      double most = 0;
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
          for (int channel = 0; channel < 3; ++channel)
            most = std::max(most, std::abs(resized.at(x, y, channel) - expected(image, x, y, channel, width, height)));
      EXPECT_LE(most, 1.05) << from_width << 'x' << from_height << " to " << width << 'x' << height;  // rounded twice
    }
}

TEST(Resize, LeavesASizeAndAnEvenColourAsTheyAre) {
  const Image image = test_picture(40, 30);
  EXPECT_EQ(resize(image.view(), 40, 30).values, image.values);
  for (const int size : {1, 3, 29, 31, 200}) {
    const Image white{.width = 30, .height = 17, .values = std::vector<uint8_t>(30 * 17, 255)};
    EXPECT_EQ(std::ranges::min(resize(white.view(), size, size).values), 255) << size;
  }
}

TEST(Resize, ReadsPixelsThatStandApartAndOnlyThose) {
  const Image image = test_picture(9, 8);
  std::vector<uint8_t> apart;
  for (size_t i = 0; i < image.values.size(); ++i) {
    apart.push_back(image.values[i]);
    if (i % 3 == 2 && i + 1 < image.values.size()) apart.push_back(static_cast<uint8_t>(i));
  }
  const ImageView view{
      .values = apart.data(), .width = 9, .height = 8, .channels = 3, .pixel_bytes = 4, .row_bytes = 36};
  for (const int size : {4, 9, 20})
    EXPECT_EQ(resize(view, size, size).values, resize(image.view(), size, size).values) << size;
}

TEST(Resize, TakesAPictureOfVeryLongRows) {
  const Image line{.width = 100'000, .height = 1, .values = std::vector<uint8_t>(100'000, 77)};
  EXPECT_EQ(resize(line.view(), 3, 2).values, (std::vector<uint8_t>(6, 77)));
}

}  // namespace
}  // namespace tern
