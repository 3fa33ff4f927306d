#include <gtest/gtest.h>

#include <cmath>

#include "tern/core/error.h"
#include "tern/kernels/short_float.h"
#include "tests/dist/codec/codec_support.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

TEST(Half, ReturnsEveryHalf) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits)
    if ((bits & 0x7c00u) != 0x7c00u) {
      EXPECT_EQ(half_bits(half_value(static_cast<uint16_t>(bits))), bits);
    }
}

TEST(Half, HasTheValuesOfTheStandard) {
  EXPECT_EQ(half_value(0x3c00), 1);
  EXPECT_EQ(half_value(0xc000), -2);
  EXPECT_EQ(half_value(0x7bff), 65504);
  EXPECT_EQ(half_value(0x0400), 0x1p-14f);
  EXPECT_EQ(half_value(0x0001), 0x1p-24f);
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(half_bits(1 + 0x1p-11f), 0x3c00);
  EXPECT_EQ(half_bits(1 + 3 * 0x1p-11f), 0x3c02);
  EXPECT_EQ(half_bits(1 + 0x1p-11f + 0x1p-20f), 0x3c01);
  EXPECT_EQ(half_bits(0x1p-25f), 0x0000);
  EXPECT_EQ(half_bits(3 * 0x1p-25f), 0x0002);
  EXPECT_EQ(half_bits(65519.9f), 0x7bff);
  EXPECT_EQ(half_bits(65520), 0x7c00);
  EXPECT_EQ(half_bits(-1e9f), 0xfc00);
}

TEST(FloatCodecs, RoundEachElement) {
  const Tensor g = Tensor::from({3}, std::vector<float>{1 + 0x1p-9f, -3, 0x1p-30f});
  EXPECT_EQ(through(*make_codec("none"), g).to_vector<float>(), g.to_vector<float>());
  EXPECT_EQ(through(*make_codec("fp16"), g).to_vector<float>(), (std::vector<float>{1 + 0x1p-9f, -3, 0}));
  EXPECT_EQ(through(*make_codec("bf16"), g).to_vector<float>(), (std::vector<float>{1, -3, 0x1p-30f}));
}

TEST(FloatCodecs, RefuseWhatHalfCannotHold) {
  const auto codec = make_codec("fp16");
  EXPECT_EQ(message_of<Error>([&] { encoded(*codec, Tensor::full({3}, -65520)); }),
            "gradient of 'conv1.weight' reaches 65520, beyond what fp16 holds");
}

}  // namespace
}  // namespace tern::test
