#include "tern/data/transforms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tern/core/error.h"

namespace tern {
namespace {

constexpr ImageSpec kGray = {.channels = 1, .height = 2, .width = 3, .classes = 2};
constexpr uint8_t kGrayPixels[] = {0, 51, 102, 153, 204, 255};
constexpr ImageSpec kColour = {.channels = 3, .height = 1, .width = 2, .classes = 2};
constexpr uint8_t kColourPixels[] = {10, 20, 30, 50, 80, 250};

std::vector<float> apply(const Transform& transform, const ImageSpec& input, std::span<const uint8_t> pixels,
                         const Augmentation& augmentation) {
  std::vector<float> image(static_cast<size_t>(transform.output(input).numel()));
  transform.apply(input, augmentation, pixels, image);
  return image;
}

/// A transform with full scale 255: the values of the image are those of its pixels.
Transform raw() { return {.mean = {0}, .deviation = {1 / 255.0f}}; }

void expect_near(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6 * (1 + std::abs(expected[i]))) << i;
}

TEST(Transform, MapsBytesToMinusOneToOneUnlessToldOtherwise) {
  expect_near(apply({}, kGray, kGrayPixels, {}), {-1, -0.6f, -0.2f, 0.2f, 0.6f, 1});
}

TEST(Transform, NormalizesEveryChannelByItsOwnStatistics) {
  const Transform transform{.mean = {0, 0.2f, 1}, .deviation = {1, 0.5f, 2}};
  constexpr uint8_t pixels[] = {51, 51, 51, 255, 0, 255};
  expect_near(apply(transform, kColour, pixels, {}), {0.2f, 0, -0.4f, 1, -0.4f, 0});
}

TEST(Transform, CropsFromWhereItIsTold) {
  Transform transform = raw();
  transform.crop_height = 1;
  transform.crop_width = 2;
  expect_near(apply(transform, kGray, kGrayPixels, {.top = 1, .left = 1}), {204, 255});
  expect_near(apply(transform, kGray, kGrayPixels, {.top = 0, .left = 0}), {0, 51});
}

TEST(Transform, FlipsLeftAndRight) {
  expect_near(apply(raw(), kGray, kGrayPixels, {.flip = true}), {102, 51, 0, 255, 204, 153});
  expect_near(apply(raw(), kColour, kColourPixels, {.flip = true}), {50, 80, 250, 10, 20, 30});
}

TEST(Transform, PadsWithBlack) {
  Transform transform = raw();
  transform.pad = 1;
  expect_near(apply(transform, kGray, kGrayPixels, {.top = 0, .left = 0}), {0, 0, 0, 0, 0, 51});
  expect_near(apply(transform, kGray, kGrayPixels, {.top = 2, .left = 2}), {204, 255, 0, 0, 0, 0});
  expect_near(apply(transform, kGray, kGrayPixels, {.top = 2, .left = 2, .flip = true}), {0, 255, 204, 0, 0, 0});
  transform.crop_height = 4;
  transform.crop_width = 5;
  expect_near(apply(transform, kGray, kGrayPixels, {}),
              {0, 0, 0, 0, 0, 0, 0, 51, 102, 0, 0, 153, 204, 255, 0, 0, 0, 0, 0, 0});
}

// The pixels are 0, 51, 102 above 153, 204, 255.
TEST(Transform, PadsWithTheMirrorImage) {
  Transform transform = raw();
  transform.pad = 1;
  transform.reflect_pad = true;
  expect_near(apply(transform, kGray, kGrayPixels, {.top = 0, .left = 0}), {204, 153, 204, 51, 0, 51});
  expect_near(apply(transform, kGray, kGrayPixels, {.top = 2, .left = 2}), {204, 255, 204, 51, 102, 51});
  expect_near(apply(transform, kGray, kGrayPixels, {.top = 1, .left = 0, .flip = true}), {51, 0, 51, 204, 153, 204});
}

TEST(Transform, FlipsEachImageInEveryOtherEpoch) {
  const Transform transform{.alternating_flip = true};
  int first = 0;
  for (int64_t index = 0; index < 400; ++index) {
    const bool flip = transform.draw(kGray, 1, 0, index).flip;
    first += flip;
    for (int64_t epoch = 1; epoch < 5; ++epoch)
      EXPECT_EQ(transform.draw(kGray, 1, epoch, index).flip, flip != (epoch % 2 == 1));
  }
  EXPECT_NEAR(first, 200, 5 * 10);
}

TEST(Transform, BrightensInFractionsOfFullScale) {
  expect_near(apply(raw(), kGray, kGrayPixels, {.brightness = 0.2f}), {51, 102, 153, 204, 255, 306});
}

TEST(Transform, StretchesContrastAroundEachChannelsMean) {
  // The means are 30, 50 and 140. Brightness changes the mean too.
  expect_near(apply(raw(), kColour, kColourPixels, {.contrast = 0.5f}), {20, 35, 85, 40, 65, 195});
  expect_near(apply(raw(), kColour, kColourPixels, {.brightness = 0.2f, .contrast = 2}), {41, 41, -29, 121, 161, 411});
}

TEST(Transform, TakesTheMeanForContrastFromTheCropWithItsPadding) {
  Transform transform = raw();
  transform.pad = 1;
  expect_near(apply(transform, kGray, kGrayPixels, {.top = 2, .left = 2, .contrast = 0}),
              std::vector<float>(6, (204.0f + 255.0f) / 6));
}

TEST(Transform, StandardizesEachImageOverAllChannels) {
  const Transform transform{.standardize = true};
  const auto image = apply(transform, kColour, kColourPixels, {});
  double mean = 0, square = 0;
  for (const uint8_t value : kColourPixels) mean += value / 6.0;
  for (const uint8_t value : kColourPixels) square += (value - mean) * (value - mean) / 6.0;
  std::vector<float> expected;
  for (const uint8_t value : kColourPixels) expected.push_back(static_cast<float>((value - mean) / std::sqrt(square)));
  expect_near(image, expected);
  // A gray image has one contrast factor. This factor and brightness do not change a standardized image.
  expect_near(apply(transform, kGray, kGrayPixels, {.brightness = 0.1f, .contrast = 1.7f}),
              apply(transform, kGray, kGrayPixels, {}));
}

TEST(Transform, StandardizesAnImageOfOneValueToZero) {
  const std::vector<uint8_t> flat(6, 200);
  expect_near(apply({.standardize = true}, kGray, flat, {}), std::vector<float>(6, 0));
  // A nearly flat image is divided by 1/√n, not by its deviation: √6·(x − mean).
  const std::vector<uint8_t> nearly = {200, 200, 200, 200, 200, 201};
  expect_near(apply({.standardize = true}, kGray, nearly, {}),
              {-0.40824829f, -0.40824829f, -0.40824829f, -0.40824829f, -0.40824829f, 2.0412415f});
}

TEST(Transform, ResizesAnAreaBetweenTheMiddlesOfPixels) {
  Transform transform = raw();
  transform.crop_height = 2;
  transform.crop_width = 3;
  transform.random_area = true;
  const auto resized = [&](const Augmentation& augmentation) {
    return apply(transform, kGray, kGrayPixels, augmentation);
  };
  expect_near(resized({.area_height = 2, .area_width = 3}), {0, 51, 102, 153, 204, 255});
  expect_near(resized({.flip = true, .area_height = 2, .area_width = 3}), {102, 51, 0, 255, 204, 153});
  expect_near(resized({.top = 1, .left = 1, .area_height = 1, .area_width = 2}), {204, 230, 255, 204, 230, 255});
  expect_near(resized({.top = 0, .left = 2, .area_height = 2, .area_width = 1}), {102, 102, 102, 255, 255, 255});
  transform.crop_height = 1;
  transform.crop_width = 1;
  expect_near(resized({.area_height = 2, .area_width = 2}), {102});
  expect_near(resized({.contrast = 0, .area_height = 2, .area_width = 2}), {102});
}

TEST(Transform, SaturatesAroundEachPixelsGrey) {
  constexpr double kGreys[] = {0.299 * 10 + 0.587 * 20 + 0.114 * 30, 0.299 * 50 + 0.587 * 80 + 0.114 * 250};
  for (const float saturation : {0.0f, 0.5f, 2.0f}) {
    std::vector<float> expected;
    for (size_t i = 0; i < 6; ++i)
      expected.push_back(static_cast<float>(kGreys[i / 3] + saturation * (kColourPixels[i] - kGreys[i / 3])));
    expect_near(apply(raw(), kColour, kColourPixels, {.saturation = saturation}), expected);
  }
  const Transform plain{.mean = {0.1f, 0.5f, 0.9f}, .deviation = {0.2f, 0.25f, 0.3f}};
  expect_near(apply(plain, kColour, kColourPixels, {.saturation = std::nextafter(1.0f, 2.0f)}),
              apply(plain, kColour, kColourPixels, {}));
}

TEST(Transform, CutsASquareOutOfTheResult) {
  Transform transform = raw();
  transform.cutout = 2;
  expect_near(apply(transform, kGray, kGrayPixels, {.cut_top = 0, .cut_left = 1}), {0, 0, 0, 153, 0, 0});
  expect_near(apply(transform, kGray, kGrayPixels, {.cut_top = -1, .cut_left = -1}), {0, 51, 102, 153, 204, 255});
  expect_near(apply(transform, kGray, kGrayPixels, {.flip = true, .cut_top = 1, .cut_left = 2}),
              {102, 51, 0, 255, 204, 0});
  expect_near(apply(transform, kColour, kColourPixels, {.cut_top = 0, .cut_left = 1}), {10, 20, 30, 0, 0, 0});
  transform.cutout = 3;
  const ImageSpec large{.channels = 1, .height = 5, .width = 7, .classes = 2};
  std::set<int32_t> rows, columns;
  for (int64_t index = 0; index < 1000; ++index) {
    const auto drawn = transform.draw(large, 1, 0, index);
    rows.insert(drawn.cut_top);
    columns.insert(drawn.cut_left);
  }
  EXPECT_EQ(rows, (std::set<int32_t>{-1, 0, 1, 2, 3}));
  EXPECT_EQ(columns, (std::set<int32_t>{-1, 0, 1, 2, 3, 4, 5}));
}

TEST(Transform, DrawsAreasOfTheShareAndShapeThatItStates) {
  constexpr ImageSpec kPicture{.channels = 3, .height = 300, .width = 400, .classes = 2};
  const Transform transform{.crop_height = 224, .crop_width = 224, .random_area = true};
  double share_sum = 0, least = 1, greatest = 0, narrowest = 2, widest = 0;
  constexpr int kDraws = 4000;
  for (int64_t index = 0; index < kDraws; ++index) {
    const auto drawn = transform.draw(kPicture, 1, 0, index);
    ASSERT_GE(drawn.top, 0);
    ASSERT_GE(drawn.left, 0);
    ASSERT_LE(drawn.top + drawn.area_height, kPicture.height);
    ASSERT_LE(drawn.left + drawn.area_width, kPicture.width);
    const double share = double(drawn.area_height) * drawn.area_width / (300 * 400),
                 shape = double(drawn.area_width) / drawn.area_height;
    least = std::min(least, share);
    greatest = std::max(greatest, share);
    narrowest = std::min(narrowest, shape);
    widest = std::max(widest, shape);
    share_sum += share;
  }
  EXPECT_NEAR(least, 0.08, 0.005);
  EXPECT_NEAR(greatest, 1, 0.02);
  EXPECT_NEAR(narrowest, 3.0 / 4, 0.02);
  EXPECT_NEAR(widest, 4.0 / 3, 0.02);
  EXPECT_NEAR(share_sum / kDraws, 0.5, 0.06) << "large areas of most shapes do not fit, so small ones are drawn more";
}

TEST(Transform, DrawsWithinItsBoundsAndReachesAllOfThem) {
  const Transform transform{.pad = 2,
                            .crop_height = 3,
                            .crop_width = 3,
                            .random_crop = true,
                            .random_flip = true,
                            .brightness = 0.25f,
                            .contrast_low = 0.2f,
                            .contrast_high = 1.8f};
  std::set<int32_t> tops, lefts;
  int flips = 0;
  double brightness = 0, contrast = 0;
  constexpr int kDraws = 4000;
  for (int64_t index = 0; index < kDraws; ++index) {
    const auto drawn = transform.draw(kGray, 1, 0, index);
    tops.insert(drawn.top);
    lefts.insert(drawn.left);
    flips += drawn.flip;
    brightness += drawn.brightness / kDraws;
    contrast += drawn.contrast / kDraws;
    EXPECT_LE(std::abs(drawn.brightness), 0.25f);
    EXPECT_GE(drawn.contrast, 0.2f);
    EXPECT_LE(drawn.contrast, 1.8f);
  }
  EXPECT_EQ(tops, (std::set<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(lefts, (std::set<int32_t>{0, 1, 2, 3, 4}));
  EXPECT_NEAR(flips, kDraws / 2, 5 * std::sqrt(kDraws / 4.0));
  EXPECT_NEAR(brightness, 0, 5 * 0.25 / std::sqrt(3.0 * kDraws));
  EXPECT_NEAR(contrast, 1, 5 * 0.8 / std::sqrt(3.0 * kDraws));
}

TEST(Transform, DrawsByExampleAndEpochAlone) {
  const Transform transform{.pad = 4, .random_crop = true, .brightness = 1};
  const auto drawn = transform.draw(kGray, 1, 2, 3);
  EXPECT_EQ(drawn, transform.draw(kGray, 1, 2, 3));
  EXPECT_NE(drawn, transform.draw(kGray, 1, 2, 4));
  EXPECT_NE(drawn, transform.draw(kGray, 1, 3, 3));
  EXPECT_NE(drawn, transform.draw(kGray, 2, 2, 3));
}

TEST(Transform, LeavesNothingToChanceInEvaluation) {
  const Transform training{.crop_height = 1,
                           .crop_width = 1,
                           .random_crop = true,
                           .alternating_flip = true,
                           .brightness = 1,
                           .contrast_low = 0,
                           .contrast_high = 2,
                           .standardize = true,
                           .cutout = 1};
  const Transform evaluation = training.for_evaluation();
  for (int64_t index = 0; index < 50; ++index)
    EXPECT_EQ(evaluation.draw(kGray, 1, 0, index), (Augmentation{.top = 0, .left = 1}));
  const Transform flips = Transform{.random_flip = true}.for_evaluation();
  for (int64_t index = 0; index < 50; ++index) EXPECT_FALSE(flips.draw(kGray, 1, 0, index).flip);
  EXPECT_TRUE(evaluation.standardize);
  EXPECT_EQ(evaluation.output(kGray), training.output(kGray));
}

TEST(Transform, RefusesWhatDoesNotFit) {
  EXPECT_THROW((Transform{.crop_height = 3}.output(kGray)), InputError);
  EXPECT_EQ((Transform{.pad = 1, .crop_height = 3}.output(kGray).height), 3);
  EXPECT_THROW((Transform{.pad = 2, .reflect_pad = true}.output(kGray)), InputError);
  EXPECT_THROW((Transform{.random_flip = true, .alternating_flip = true}.output(kGray)), InputError);
  EXPECT_THROW((Transform{.mean = {0, 0}}.output(kColour)), InputError);
  EXPECT_THROW((Transform{.deviation = {0}}.output(kGray)), InputError);
  EXPECT_THROW((Transform{.pad = 1, .random_area = true}.output(kGray)), InputError);
  EXPECT_THROW((Transform{.random_crop = true, .random_area = true}.output(kGray)), InputError);
  EXPECT_THROW((Transform{.random_area = true, .least_area = 0}.output(kGray)), InputError);
  EXPECT_THROW((Transform{.saturation_low = 0.5f}.output(kGray)), InputError);
  EXPECT_THROW((Transform{.saturation_high = 2, .standardize = true}.output(kColour)), InputError);
  EXPECT_THROW((Transform{.cutout = -1}.output(kGray)), InputError);
  EXPECT_THROW((Transform{.crop_height = -1}.output(kGray)), InputError);
  EXPECT_THROW((Transform{.crop_width = -1}.output(kGray)), InputError);
  EXPECT_THROW((Transform{.brightness = -0.1f}.output(kGray)), InputError);
  EXPECT_THROW((Transform{.brightness = std::nanf("")}.output(kGray)), InputError);
  EXPECT_THROW((Transform{.contrast_low = 1.2f}.output(kGray)), InputError);
  EXPECT_THROW((Transform{.contrast_high = std::nanf("")}.output(kGray)), InputError);
}

}  // namespace
}  // namespace tern
