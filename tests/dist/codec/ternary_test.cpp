#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tern/core/error.h"
#include "tern/kernels/elementwise.h"
#include "tests/dist/codec/codec_support.h"

namespace tern::test {
namespace {

Tensor scalers_of(const std::string& spec, const Tensor& g) { return make_codec(spec)->scaled()->scalers(tag(), g); }

TEST(Ternary, TakesTheScalersThatTheModesDefine) {
  // The mean is 2, and the population deviation around it is √(30/4).
  const Tensor g = Tensor::from({4}, std::vector<float>{6, 3, -1, 0});
  const float deviation = std::sqrt(7.5f);
  EXPECT_EQ(scalers_of("ternary:clip=0", g).to_vector<float>(), std::vector<float>{6});
  EXPECT_EQ(scalers_of("ternary:clip=2.5", g).to_vector<float>(), std::vector<float>{6});
  EXPECT_NEAR(scalers_of("ternary:clip=1", g).item(), deviation, 1e-6);
  EXPECT_NEAR(scalers_of("ternary:clip=2.5,clip-mode=reference", g).item(), 2.5f * deviation, 1e-6);
  EXPECT_EQ(scalers_of("ternary:clip=0,bucket=3", g).to_vector<float>(), (std::vector<float>{6, 0}));
  EXPECT_EQ(scalers_of("ternary", Tensor::full({1}, -3)).to_vector<float>(), std::vector<float>{3}) << "one value";
}

// The example of TernGrad's poster: an element of magnitude S is always ±S; the others are ±S or 0.
TEST(Ternary, DrawsThePostersExample) {
  const auto codec = make_codec("ternary:clip=0");
  const Tensor g = Tensor::from({3}, std::vector<float>{0.30f, -1.20f, 0.9f});
  int first = 0, last = 0;
  for (uint32_t step = 0; step < 4000; ++step) {
    const auto found = through(*codec, g, tag(0, step)).to_vector<float>();
    EXPECT_TRUE(found[0] == 0 || found[0] == 1.2f);
    EXPECT_EQ(found[1], -1.2f);
    first += found[0] != 0;
    last += found[2] != 0;
  }
  EXPECT_NEAR(first / 4000.0, 0.25, 0.034);  // five standard errors
  EXPECT_NEAR(last / 4000.0, 0.75, 0.034);
}

// Bernstein's bound with the true p. The false alarm is 1e-6 over all 1000 elements.
TEST(Ternary, IsUnbiasedInEveryElement) {
  constexpr int64_t n = 1000, kDraws = 10000;
  const auto codec = make_codec("ternary:clip=0");
  const Tensor g = gaussian({n});
  const double scaler = scalers_of("ternary:clip=0", g).item();
  Tensor sum = Tensor::zeros({n});
  for (uint32_t step = 0; step < kDraws; ++step) {
    const Tensor found = through(*codec, g, tag(0, step));
    for (int64_t i = 0; i < n; ++i) {
      const float sign = found.data<float>()[i];
      sum.data<float>()[i] += sign == 0 ? 0.0f : sign > 0 ? 1.0f : -1.0f;
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    const double p = std::abs(g.data<float>()[i]) / scaler;
    const double error = scaler * sum.data<float>()[i] / kDraws - g.data<float>()[i];
    EXPECT_LE(std::abs(error), scaler * (std::sqrt(42.8 * p * (1 - p) / kDraws) + 14.3 / kDraws)) << "element " << i;
  }
}

// 1e8 draws: a truncation to 8 bits would show a bias of 1.95e-3·S. CodecArithmetic tests on chosen words that there is
// no truncation to 16 bits either.
TEST(Ternary, HasNoBiasInTheLargeEither) {
  constexpr int64_t n = 1 << 16, kRounds = 1526;
  const auto codec = make_codec("ternary:clip=0");
  Tensor g = gaussian({n});
  for (float& x : g.span<float>()) x = std::abs(x);
  const double scaler = scalers_of("ternary:clip=0", g).item();
  double expected = 0, found = 0;
  for (const float x : g.span<float>()) expected += x;
  for (uint32_t step = 0; step < kRounds; ++step) {
    const Tensor back = through(*codec, g, tag(0, step));
    for (const float x : back.span<float>()) found += x;
  }
  EXPECT_LE(std::abs(found / kRounds - expected) / n, 2.0e-4 * scaler);
}

// E‖g̃‖² = S‖c‖₁ (appendix A, eq. 25), over 100 encodes of 65,536 elements.
TEST(Ternary, HasTheSecondMomentOfTheTheorem) {
  const Tensor g = gaussian({65536});
  struct Row {
    const char* spec;
    double tolerance, ratio, ratio_tolerance;  // without clipping, the ratio depends on the one largest value
  };
  for (const auto& [spec, tolerance, ratio, ratio_tolerance] :
       {Row{"ternary", 0.0025, 1.985, 0.02}, Row{"ternary:clip=0", 0.004, 3.51, 0.5}}) {
    const auto codec = make_codec(spec);
    const double scaler = scalers_of(spec, g).item();
    double one_norm = 0, moment = 0;
    for (const float x : g.span<float>()) one_norm += std::min<double>(std::abs(x), scaler);
    for (uint32_t step = 0; step < 100; ++step) moment += squared_norm(through(*codec, g, tag(0, step))) / 100;
    EXPECT_NEAR(moment / (scaler * one_norm), 1, tolerance) << spec;
    EXPECT_NEAR(moment / squared_norm(g), ratio, ratio_tolerance) << spec;
  }
}

// N(0, 1) at c = 2.5: the closed forms, and section 3.3 of the paper.
TEST(Ternary, ClipsAGaussianAsTheFormulasSay) {
  const int64_t n = 65536;
  const Tensor g = gaussian({n});
  const float limit = static_cast<float>(scalers_of("ternary", g).item());
  Tensor clipped = g.clone();
  int beyond = 0;
  double product = 0;
  for (float& x : clipped.span<float>()) {
    beyond += std::abs(x) > limit;
    x = std::clamp(x, -limit, limit);
  }
  for (int64_t i = 0; i < n; ++i) product += double{g.data<float>()[i]} * clipped.data<float>()[i];
  const double length = std::sqrt(squared_norm(clipped) / squared_norm(g));
  const double angle = std::acos(product / std::sqrt(squared_norm(clipped) * squared_norm(g)));
  EXPECT_NEAR(100 * (length - 1), -1.128, 0.25);
  EXPECT_NEAR(angle * 180 / std::numbers::pi, 2.746, 0.5);
  EXPECT_NEAR(100.0 * beyond / n, 1.242, 0.25);

  const auto found = through(*make_codec("ternary"), g).to_vector<float>();
  const double zeros = static_cast<double>(std::ranges::count(found, 0.0f)) / n;
  EXPECT_NEAR(zeros, 0.68245, 0.0091);  // five standard errors
  const double entropy = -zeros * std::log2(zeros) - (1 - zeros) * std::log2((1 - zeros) / 2);
  EXPECT_NEAR(entropy, 1.2192, 0.02);
}

TEST(Ternary, RanksDrawIndependently) {
  const int64_t n = 65536, kRanks = 8;
  const Tensor g = gaussian({n});
  const auto codec = make_codec("ternary:clip=0");
  Tensor mean = Tensor::zeros({n});
  double one = 0;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    const auto bytes = encoded(*codec, g, tag(rank));
    one += squared_distance(decoded(*codec, bytes, {n}), g) / kRanks;
    codec->decode_add(tag(), bytes, mean);
  }
  for (float& x : mean.span<float>()) x /= kRanks;
  EXPECT_NEAR(squared_distance(mean, g) / one, 0.125, 0.01);
}

/// The means, over draws of codes with a shared scaler, of the decoded gradient and of its squared length.
struct Moments {
  Tensor mean;
  double second = 0;
};
Moments moments_of(const std::string& spec, const Tensor& g, const Tensor& shared, uint32_t draws) {
  const auto codec = make_codec(spec);
  Moments found = {Tensor::zeros(g.shape())};
  for (uint32_t step = 0; step < draws; ++step) {
    std::vector<std::byte> codes;
    codec->scaled()->append_codes(tag(0, step), g, shared, codes);
    Tensor once = Tensor::zeros(g.shape());
    codec->scaled()->add_codes(codes, shared, once);
    found.second += squared_norm(once) / draws;
    kernels::accumulate(once, found.mean);
  }
  kernels::scale(found.mean, 1.0 / draws, found.mean);
  return found;
}

// Each rank clips at its own limit L, then codes by the shared S: E g̃ = c and E‖g̃‖² = S‖c‖₁, with c the gradient
// clipped to ±L. S is twice L here. The bound is Bernstein's, as above. `telling` elements would break it without the
// rank's own clipping.
TEST(Ternary, ClipsAtItsOwnLimitBeforeItCodesByTheSharedScaler) {
  constexpr int64_t n = 4000;
  constexpr uint32_t kDraws = 4000;
  const Tensor g = gaussian({n});
  for (const char* pack : {"", ",pack=5trit"})
    for (const int64_t bucket : {int64_t{0}, int64_t{1000}}) {
      const std::string spec = join({"ternary:share=on,clip-mode=own,bucket=", bucket, pack});
      const Tensor limits = scalers_of(spec, g);
      Tensor shared = limits.clone();
      EXPECT_EQ(limits.to_vector<float>(), scalers_of(join({"ternary:bucket=", bucket}), g).to_vector<float>());
      kernels::scale(limits, 2, shared);
      const Moments found = moments_of(spec, g, shared, kDraws);
      double moment = 0;
      int telling = 0;
      for (int64_t i = 0; i < n; ++i) {
        const int64_t b = bucket == 0 ? 0 : i / bucket;
        const double limit = limits.data<float>()[b], scaler = shared.data<float>()[b], x = g.data<float>()[i];
        const double expected = std::clamp(x, -limit, limit), p = std::abs(expected) / scaler;
        moment += scaler * std::abs(expected);
        const double bound = scaler * (std::sqrt(42.8 * p * (1 - p) / kDraws) + 14.3 / kDraws);
        telling += std::abs(x - expected) > 2 * bound;
        ASSERT_LE(std::abs(found.mean.data<float>()[i] - expected), bound) << spec << ", element " << i;
      }
      EXPECT_GT(telling, 0);
      EXPECT_NEAR(found.second / moment, 1, 0.0025) << spec;
    }
}

TEST(Ternary, CodesWholeMessagesByOwnLimitsAsSingleTensors) {
  const auto codec = make_codec("ternary:clip=1,share=on,clip-mode=own");
  const FusedGradients message = {{tag(0), gaussian({700})}, {tag(1), gaussian({33})}};
  const Tensor shared = Tensor::from({2}, std::vector<float>{5, 4});
  std::vector<std::byte> one_by_one;
  for (int64_t i = 0; i < 2; ++i)
    codec->scaled()->append_codes(message[i].tag, message[i].gradient, shared.slice(i, i + 1), one_by_one);
  const Tensor whole = codec->messages()->encode(message, shared);
  const auto bytes = std::as_bytes(whole.span<uint8_t>());
  EXPECT_TRUE(std::ranges::equal(bytes, one_by_one));
  EXPECT_FALSE(std::ranges::equal(
      bytes,
      std::as_bytes(make_codec("ternary:clip=1,share=on")->messages()->encode(message, shared).span<uint8_t>())));
}

TEST(Ternary, SumsCodesOfSeveralRanksAsIntegers) {
  const Tensor g = gaussian({777});
  const auto codec = make_codec("ternary:share=on,pack=5trit");
  const ScaledCodec& shared = *codec->scaled();
  EXPECT_EQ(shared.sharing(), ScalerSharing::on);
  const Tensor scalers = Tensor::full({1}, 3), ones = Tensor::full({1}, 1);
  Tensor levels = Tensor::zeros({777}), values = Tensor::zeros({777});
  for (uint32_t rank = 0; rank < 5; ++rank) {
    std::vector<std::byte> codes;
    shared.append_codes(tag(rank), g, scalers, codes);
    shared.add_codes(codes, ones, levels);
    shared.add_codes(codes, scalers, values);
  }
  for (int64_t i = 0; i < 777; ++i) {
    const float level = levels.data<float>()[i];
    EXPECT_EQ(level, std::round(level));
    EXPECT_LE(std::abs(level), 5);
    EXPECT_EQ(values.data<float>()[i], 3 * level);
  }
}

// The bytes of the encoded gradient over 4n bytes. Every tensor of LeNet is coded.
TEST(Ternary, ShrinksLeNet) {
  const std::vector<Shape> lenet = {{20, 1, 5, 5}, {20}, {50, 20, 5, 5}, {50}, {500, 800}, {500}, {10, 500}, {10}};
  const auto ratio = [&](const char* spec) {
    const auto codec = make_codec(spec);
    double bytes = 0, floats = 0;
    for (const Shape& shape : lenet) {
      bytes += static_cast<double>(encoded(*codec, gaussian(shape)).size());
      floats += 4.0 * static_cast<double>(shape.numel());
    }
    return bytes / floats;
  };
  EXPECT_LE(ratio("ternary"), 1 / 15.0);
  EXPECT_LE(ratio("ternary:pack=5trit"), 1 / 19.0);
}

}  // namespace
}  // namespace tern::test
