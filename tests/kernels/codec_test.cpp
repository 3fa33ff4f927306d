#include "tern/kernels/codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tern/kernels/codec_arithmetic.h"
#include "tern/kernels/hadamard.h"
#include "tests/support/message_of.h"

namespace tern::kernels {
namespace {

const RandomKey kKey{.seed = 11, .purpose = Purpose::codec, .owner = 1, .step = 2, .tensor = 3};

/// The codes of one gradient.
Tensor codes_of(const Tensor& g, double unit, int64_t levels) {
  const CodedGradient coded = {g, Tensor::full({1}, unit),
                               Tensor::empty({code_bytes(g.numel(), code_bits(levels))}, {.dtype = DType::u8}), kKey};
  quantize({&coded, 1}, 0, levels);
  return coded.codes.reshape({1, -1});
}
void add_decoded(const Tensor& codes, double unit, int64_t levels, const Tensor& sum) {
  const DecodedGradient decoded = {sum};
  dequantize_add({&decoded, 1}, codes, Tensor::full({1}, unit), 0, levels);
}
Tensor statistics_of(const Tensor& g, int64_t bucket) {
  const MeasuredGradient measured = {g, Tensor::empty({bucket_count(g.numel(), bucket), 3}, {.dtype = DType::f64})};
  gradient_statistics({&measured, 1}, bucket);
  return measured.statistics;
}

TEST(CodecArithmetic, RoundsUpWhereTheDrawReachesTheFraction) {
  const auto never = []() -> uint32_t { throw Error("not needed"); };
  // 2 + 0x4000 / 65536: the upper quarter of all draws rounds up.
  const float scaled = 2 * 65536.0f + 0x4000;
  EXPECT_EQ(codec_level(scaled, 0, never), 2u);
  EXPECT_EQ(codec_level(scaled, 0xbffe, never), 2u);
  EXPECT_EQ(codec_level(scaled, 0xc000, never), 3u);
  EXPECT_EQ(codec_level(scaled, 0xfffe, never), 3u);
}

TEST(CodecArithmetic, SettlesTiesByThirtyTwoBitsMore) {
  const auto given = [](uint32_t word) { return [=] { return word; }; };
  const float scaled = 0x4000 + 0.25f;
  EXPECT_EQ(codec_level(scaled, 0xbfff, given(0)), 0u);
  EXPECT_EQ(codec_level(scaled, 0xbfff, given(0xbfffffffu)), 0u);
  EXPECT_EQ(codec_level(scaled, 0xbfff, given(0xc0000000u)), 1u);
  EXPECT_EQ(codec_level(0.0f, 0xffff, given(0xffffffffu)), 0u) << "zero stays zero";
  EXPECT_EQ(codec_level(65536.0f, 0xffff, given(0)), 1u) << "a whole level stays itself";
  EXPECT_EQ(codec_level(32767 * 65536.0f, 0xffff, given(0xffffffffu)), 32767u);
}

TEST(CodecArithmetic, AddsRunsAsABinaryTree) {
  CodecSums sums[5];
  for (int i = 0; i < 5; ++i) sums[i] = {1.0 * i, std::pow(2.0, 13 * i), 1};
  const CodecSums all = codec_tree(sums, 5);
  EXPECT_EQ(all.largest, 4);
  EXPECT_EQ(all.squares, 5);
  EXPECT_EQ(all.sum, (1 + 0x1p13 + (0x1p26 + 0x1p39)) + 0x1p52);
  EXPECT_EQ(codec_tree(sums, 0).squares, 0);
}

TEST(Quantize, LaysCodesInPlanesOfThirtyTwo) {
  // Whole levels do not depend on draws. Element i is i mod 4 units, and odd ones are negative.
  std::vector<float> values(37);
  for (int i = 0; i < 37; ++i) values[i] = (i % 2 == 1 ? -0.5f : 0.5f) * static_cast<float>(i % 4);
  const auto bytes = codes_of(Tensor::from({37}, values), 0.5, 3).to_vector<uint8_t>();
  const std::vector<uint8_t> expected = {0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa,
                                         0xcc, 0xcc, 0xcc, 0xcc, 0x0a, 0x0a, 0x0c};
  EXPECT_EQ(bytes, expected);
  Tensor sum = Tensor::full({37}, 1);
  add_decoded(Tensor::from({1, 15}, bytes), 0.5, 3, sum);
  for (int i = 0; i < 37; ++i) EXPECT_EQ(sum.span<float>()[i], 1 + values[i]);
}

TEST(Quantize, ClipsAtTheLastLevelAndKeepsZero) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const Tensor g = Tensor::from({6}, std::vector<float>{9, -9, 0, -0.0f, infinity, nan});
  Tensor sum = Tensor::zeros({6});
  add_decoded(codes_of(g, 2, 3), 2, 3, sum);
  EXPECT_EQ(sum.to_vector<float>(), (std::vector<float>{6, -6, 0, 0, 6, 6}));
  Tensor nothing = Tensor::zeros({6});
  const auto zero_unit = codes_of(Tensor::from({6}, std::vector<float>{9, -9, 0, 1, 1, 1}), 0, 1);
  add_decoded(zero_unit, 0, 1, nothing);
  EXPECT_EQ(nothing.to_vector<float>(), std::vector<float>(6, 0));
}

TEST(Quantize, TakesTheDocumentedDraws) {
  const int64_t n = 1000;
  const RandomStream stream(kKey);
  Tensor sum = Tensor::zeros({n});
  add_decoded(codes_of(Tensor::full({n}, 0.3), 1, 1), 1, 1, sum);
  for (uint64_t e = 0; e < n; ++e) {
    const auto block = static_cast<uint32_t>(e / 256 * 32 + e % 32);
    const uint32_t draw = stream.word(4 * uint64_t{block} + e % 256 / 64) >> (e % 64 / 32 * 16) & 0xffff;
    EXPECT_EQ(sum.span<float>()[e], draw + 0.3f * 65536 >= 65536 ? 1 : 0) << e;
  }
}

TEST(GradientStatistics, AreThoseOfEachBucketAndShowNaNAndInfinity) {
  EXPECT_EQ(statistics_of(Tensor::from({5}, std::vector<float>{1, -4, 2, 0.5, -0.25}), 3).to_vector<double>(),
            (std::vector<double>{4, -1, 21, 0.5, 0.25, 0.3125}));
  for (const double bad : {NAN, INFINITY, -INFINITY})
    for (const int64_t where : {0, 17, 4095, 9999}) {
      const Tensor g = Tensor::full({10000}, 3e38);
      EXPECT_TRUE(std::isfinite(statistics_of(g, 0).to_vector<double>()[2]));
      g.span<float>()[where] = static_cast<float>(bad);
      EXPECT_FALSE(std::isfinite(statistics_of(g, 0).to_vector<double>()[2]));
    }
}

TEST(CodecFactor, IsTheNearestFloat) {
  const RandomStream stream({.seed = 1, .purpose = Purpose::test});
  for (uint64_t i = 0; i < 100'000; ++i) {
    const float unit = std::ldexp(1 + stream.uniform(2 * i), static_cast<int>(stream.below(2 * i + 1, 220)) - 110);
    ASSERT_EQ(codec_factor(unit), static_cast<float>(65536.0 / static_cast<double>(unit))) << unit;
  }
}

TEST(HadamardMean, NamesItselfInErrors) {
  Tensor mean = Tensor::empty({1});
  const Tensor messages = Tensor::zeros({2, 20}, {.dtype = DType::u8});
  EXPECT_EQ(message_of<Error>([&] { hadamard_mean(messages, 0, 5, mean); }),
            "hadamard_mean: bits is 5, expected 1 to 4");
}

TEST(CodeBytes, CountsEveryPlane) {
  EXPECT_EQ(code_bits(1), 2);
  EXPECT_EQ(code_bits(7), 4);
  EXPECT_EQ(code_bits(8), 5);
  EXPECT_EQ(code_bits(127), 8);
  EXPECT_EQ(code_bytes(0, 2), 0);
  EXPECT_EQ(code_bytes(1, 4), 4);
  EXPECT_EQ(code_bytes(64, 4), 32);
  EXPECT_EQ(code_bytes(65, 2), 18);
}

}  // namespace
}  // namespace tern::kernels
