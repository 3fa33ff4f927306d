#include <gtest/gtest.h>

#include <cmath>

#include "tests/dist/codec/codec_support.h"

namespace tern::test {
namespace {

/// ‖decoded - g‖² / ‖g‖²
double distortion(const std::string& spec, const Tensor& g) {
  return squared_distance(through(*make_codec(spec), g), g) / squared_norm(g);
}

// The distortion of the Lloyd-Max levels of the normal distribution, made unbiased: d / (1 - d) with Max's d = 0.3634,
// 0.1175, 0.0345, 0.0095.
TEST(Hadamard, HasTheDistortionOfLloydMaxLevels) {
  const Tensor g = gaussian({1 << 18});
  constexpr double kExpected[] = {0.571, 0.133, 0.0358, 0.0096};
  for (int bits = 1; bits <= 4; ++bits) {
    const double expected = kExpected[bits - 1];
    EXPECT_NEAR(distortion("hadamard:bits=" + std::to_string(bits), g), expected, 0.02 * expected) << bits;
  }
  EXPECT_NEAR(distortion("ternary", g), 1.01, 0.02);
  EXPECT_NEAR(distortion("qsgd:bits=4,bucket=512", g), 0.036, 0.02 * 0.036);
}

// The rotation makes any vector nearly normal, one with heavy tails too.
TEST(Hadamard, HasItForHeavyTailsToo) {
  Tensor g = gaussian({1 << 18});
  const Tensor other[] = {gaussian({1 << 18}, 2), gaussian({1 << 18}, 3), gaussian({1 << 18}, 4)};
  for (size_t i = 0; i < g.span<float>().size(); ++i) {  // Student's t with 3 degrees of freedom
    double squares = 0;
    for (const Tensor& each : other) squares += std::pow(each.span<float>()[i], 2);
    g.span<float>()[i] /= static_cast<float>(std::sqrt(squares / 3));
  }
  EXPECT_NEAR(distortion("hadamard:bits=2", g), 0.133, 0.02 * 0.133);
  EXPECT_GT(distortion("qsgd:bits=4,bucket=512", g), 0.15);
}

TEST(Hadamard, SendsItsBitsAndOneScaleForABucket) {
  for (int64_t bits = 1; bits <= 4; ++bits) {
    const auto codec = make_codec("hadamard:bits=" + std::to_string(bits));
    EXPECT_EQ(codec->most_bytes({3 * 4096}), bits * 3 * 4096 / 8 + 3 * 4 + 8);
    EXPECT_EQ(codec->most_bytes({4096 + 100}), bits * (4096 + 128) / 8 + 2 * 4 + 8);  // padded to 128
    EXPECT_EQ(codec->most_bytes({1}), bits + 4 + 8);
  }
}

TEST(Hadamard, OfAVectorOfEqualMagnitudesOrOneElementIsExactWithOneBit) {
  Tensor g = Tensor::zeros({4096});
  g.span<float>()[17] = -3;
  EXPECT_LT(distortion("hadamard:bits=1", g), 1e-9);
  EXPECT_LT(distortion("hadamard:bits=1", Tensor::full({1}, -2)), 1e-12);
}

}  // namespace
}  // namespace tern::test
