#include <gtest/gtest.h>

#include <cmath>

#include "tern/apps/reproduce/quantization.h"
#include "tern/core/error.h"

namespace tern::reproduce {
namespace {

std::unique_ptr<GradientCodec> codec_of(int64_t levels, const std::string& code) {
  return make_codec(join({"qsgd:bucket=0,norm=l2,levels=", levels, ",code=", code}));
}

int64_t message_bits(const std::string& code, int64_t levels, const Tensor& v, uint32_t step) {
  std::vector<std::byte> message;
  codec_of(levels, code)->encode({"v", {.seed = 1, .purpose = Purpose::codec, .step = step}}, v, message);
  return 8 * static_cast<int64_t>(message.size());
}

/// The mean of a long vector and the mean of its squares.
std::pair<double, double> moments(Distribution distribution) {
  const Tensor v = drawn_vector(distribution, 100'000, 1);
  double mean = 0, squares = 0;
  for (const float x : v.span<float>()) {
    mean += x / 1e5;
    squares += double{x} * x / 1e5;
  }
  return {mean, squares};
}

TEST(DrawnVector, HasTheMomentsOfItsDistribution) {
  struct Row {
    Distribution distribution;
    double mean, squares;
  };
  for (const auto& [distribution, mean, squares] :
       {Row{Distribution::gauss, 0, 1}, Row{Distribution::uniform, 0, 1.0 / 3}, Row{Distribution::laplace, 0, 2},
        Row{Distribution::constant, 0, 1}}) {
    const auto [found_mean, found_squares] = moments(distribution);
    EXPECT_NEAR(found_mean, mean, 5 * std::sqrt(squares / 1e5)) << to_string(distribution);
    EXPECT_NEAR(found_squares / squares, 1, 0.05) << to_string(distribution);
  }
}

// All elements have the same magnitude, s = 1 and n = 512. Each element becomes ±‖v‖ with probability 1/√n. So the
// variance is √n − 1 and the number of non-zeros is √n. Each is one less than its bound.
TEST(QuantizationSample, ComesNearTheBoundsWhereTheyAreTight) {
  const Tensor v = drawn_vector(Distribution::constant, 512, 1);
  const double root = std::sqrt(512.0);
  const ExpectedQuantization expected = expected_quantization({.levels = 1}, v);
  EXPECT_NEAR(expected.variance, root - 1, 1e-4);
  EXPECT_NEAR(expected.nonzeros, root, 1e-4);
  EXPECT_NEAR(variance_bound(512, 1), root, 1e-9);
  EXPECT_NEAR(nonzeros_bound(512, 1), root + 1, 1e-9);

  const QuantizationSample sample = sample_quantization(*codec_of(1, "fixed"), v, 2000);
  EXPECT_EQ(sample.variance.count, 2000);
  EXPECT_NEAR(sample.along.mean, 1, 5 * sample.along.standard_error());
  EXPECT_NEAR(sample.variance.mean, expected.variance, 5 * sample.variance.standard_error());
  EXPECT_NEAR(sample.nonzeros.mean, expected.nonzeros, 5 * sample.nonzeros.standard_error());
  EXPECT_NEAR(sample.mean_error, 1, 5 * std::sqrt(2.0 / 512));
}

// bf16 rounds each element the same way in every draw. No draw has a larger error than another, but the mean of the
// draws has that same error.
TEST(QuantizationSample, TellsABiasedCodec) {
  const Tensor v = drawn_vector(Distribution::gauss, 1000, 1);
  EXPECT_NEAR(sample_quantization(*make_codec("bf16"), v, 100).mean_error, 100, 1e-6);
}

TEST(QuantizationSample, ExpectsBucketsScaledByTheirMaximum) {
  const Tensor v = Tensor::from({4}, std::vector<float>{4, 1, 0, 10});
  const ExpectedQuantization expected = expected_quantization({.levels = 2, .bucket = 2, .by_maximum = true}, v);
  // The units of the two buckets are 2 and 5, so the levels are 2, 0.5, 0 and 2. The second element becomes 0 or 2 with
  // equal chances.
  EXPECT_DOUBLE_EQ(expected.variance, 1.0 / 117);
  EXPECT_DOUBLE_EQ(expected.nonzeros, 2.5);
}

TEST(CodeSizes, CountWhatTheCodecSends) {
  for (const Distribution distribution : distributions())
    for (const int64_t levels : {1, 4, 32}) {
      const Tensor v = drawn_vector(distribution, 1024, 3);
      const EliasBits bits = elias_bits(drawn_levels(*codec_of(levels, "fixed"), v, 7));
      const int64_t shorter = 1 + std::min(bits.sparse, bits.dense);
      EXPECT_EQ(message_bits("elias", levels, v, 7), 32 + (shorter + 7) / 8 * 8) << to_string(distribution);
      // The fixed code sends the same levels, one bit plane after another.
      EXPECT_EQ(message_bits("fixed", levels, v, 7), 32 + 1024 * (levels == 1 ? 2 : levels == 4 ? 4 : 7));
    }
}

TEST(CodeSizes, HaveTheBoundsOfThePaper) {
  EXPECT_DOUBLE_EQ(theorem_bits(65536, 256), 9 * 65536 + 32);  // s = √n: log₂ 2 = 1, at most 2n non-zeros
  EXPECT_NEAR(theorem_bits(1024, 2), (3 + 1.5 * std::log2(2 * 1028 / 68.0)) * 68 + 32, 1e-9);
  EXPECT_DOUBLE_EQ(corollary_bits(1000), 2832);
}

}  // namespace
}  // namespace tern::reproduce
