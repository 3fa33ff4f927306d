#include "tern/layers/initialize.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

/// An initialiser, and the moments and the bound of its draws.
struct Case {
  const char* name;
  Initializer initializer;
  double mean, deviation, bound;
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const Shape kShape{64, 32, 5, 5};
constexpr double kFanIn = 32 * 25, kFanOut = 64 * 25;

TEST(Initialize, DrawsWithTheMomentsOfItsDistribution) {
  const double glorot = std::sqrt(2 / (kFanIn + kFanOut)), he = std::sqrt(2 / kFanIn);
  // A normal distribution that is cut at two deviations keeps this share of its deviation.
  constexpr double kTruncated = 0.8796257;
  const std::vector<Case> table{
      {"normal", normal(0.3, 1), 1, 0.3, kInfinity},
      {"truncated_normal", truncated_normal(0.3, 1), 1, 0.3 * kTruncated, 0.6},
      {"uniform", uniform(-1, 3), 1, 4 / std::sqrt(12), 2},
      {"xavier_uniform", xavier_uniform(), 0, glorot, glorot * std::sqrt(3)},
      {"xavier_normal", xavier_normal(2), 0, 2 * glorot, kInfinity},
      {"kaiming_uniform", kaiming_uniform(), 0, he, he * std::sqrt(3)},
      {"kaiming_normal", kaiming_normal({.fan = Fan::out}), 0, std::sqrt(2 / kFanOut), kInfinity},
      {"kaiming_slope", kaiming_normal({.slope = 2}), 0, he / std::sqrt(5), kInfinity},
      {"default_weight", default_weight(), 0, 1 / std::sqrt(3 * kFanIn), 1 / std::sqrt(kFanIn)},
      {"default_bias", default_bias(kShape), 0, 1 / std::sqrt(3 * kFanIn), 1 / std::sqrt(kFanIn)},
  };
  for (const auto& [name, initializer, mean, deviation, bound] : table) {
    SCOPED_TRACE(name);
    const Tensor weight = Tensor::empty(kShape);
    initializer(weight, RandomStream({.seed = 1, .purpose = Purpose::initialize}));
    const auto n = static_cast<double>(weight.numel());
    double sum = 0, squares = 0, farthest = 0;
    for (float value : weight.span<float>()) {
      const double centered = value - mean;
      sum += centered;
      squares += centered * centered;
      farthest = std::max(farthest, std::abs(centered));
    }
    EXPECT_NEAR(sum / n, 0, 5 * deviation / std::sqrt(n));
    EXPECT_NEAR(std::sqrt(squares / n), deviation, 0.015 * deviation);
    EXPECT_LE(farthest, bound * (1 + 1e-6));
    EXPECT_TRUE(bound == kInfinity || farthest >= bound * 0.999) << farthest << " of " << bound;
  }
}

// A rank that keeps a part of a tensor draws that part of the whole tensor's values.
TEST(Initialize, DrawsThePartsOfTheWholeTensor) {
  const Shape shape{6, 5, 3, 3};
  const RandomStream random({.seed = 1, .purpose = Purpose::initialize});
  for (const Initializer& initializer :
       {constant(2), normal(0.3, 1), truncated_normal(0.3), uniform(-1, 3), xavier_uniform(), xavier_normal(2),
        kaiming_uniform(), kaiming_normal({.fan = Fan::out}), default_bias(shape), dirac()}) {
    const Tensor whole = Tensor::empty(shape);
    initializer(whole, random);
    for (const TensorRange& range : {TensorRange{0, 2, 5}, TensorRange{1, 1, 4}, TensorRange{1, 0, 5}}) {
      const Tensor part = Tensor::empty(range.shape_in(shape));
      initializer({part, shape, range}, random);
      const int64_t outers = range.dimension == 0 ? 1 : 6, inner = shape.numel_from(range.dimension + 1);
      for (int64_t outer = 0, i = 0; outer < outers; ++outer)
        for (int64_t at = range.begin * inner; at < range.end * inner; ++at, ++i)
          ASSERT_EQ(part.data<float>()[i], whole.data<float>()[outer * shape[range.dimension] * inner + at]);
    }
  }
}

TEST(Initialize, UniformDrawsStayBelowTheUpperBound) {
  // The floats above 2^24 are 2 apart, so half of the draws round up to `high`.
  const double low = 0x1p24, high = 0x1p24 + 2;
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = Tensor::empty({64}, {dtype});
    uniform(low, high)(x, RandomStream({.seed = 1}));
    for (const double value : x.to_vector<double>()) EXPECT_EQ(value, low);
    uniform(3, 3)(x, RandomStream({.seed = 1}));
    for (const double value : x.to_vector<double>()) EXPECT_EQ(value, 3);
  }
}

TEST(Initialize, ABiasWithoutInputsIsZero) {
  const Tensor bias = Tensor::empty({3});
  default_bias({3, 0})(bias, RandomStream({}));
  EXPECT_EQ(bias.to_vector<float>(), std::vector<float>(3, 0.0f));
}

TEST(Initialize, FillsWithAConstant) {
  const Tensor bias = Tensor::empty({3}, {DType::f64});
  constant(0.1)(bias, RandomStream({}));
  EXPECT_EQ(bias.to_vector<double>(), (std::vector<double>{0.1, 0.1, 0.1}));
}

TEST(Initialize, DiracPassesTheInputOn) {
  for (const int64_t groups : {1, 2}) {
    const Tensor weight = Tensor::empty({6, 4 / groups, 3, 5});
    dirac(groups)(weight, RandomStream({}));
    Tensor x = Tensor::empty({2, 4, 4, 6});
    normal(1)(x, RandomStream({.seed = 3, .purpose = Purpose::initialize}));
    const Variable y = conv2d(x, weight, {}, {.padding = {1, 2}, .groups = groups});
    const int64_t outputs = 6 / groups, inputs = 4 / groups;
    for (int64_t c = 0; c < 6; ++c) {
      const int64_t place = c % outputs;
      const auto found = slice(y, 1, c, c + 1).value().to_vector<float>();
      const int64_t from = c / outputs * inputs + place;
      const auto expected =
          place < inputs ? slice(x, 1, from, from + 1).value().to_vector<float>() : std::vector<float>(found.size());
      EXPECT_EQ(found, expected) << groups << " groups, channel " << c;
    }
  }
  EXPECT_EQ(message_of<Error>([] {
              dirac(4)(Tensor::empty({6, 4, 3, 3}), RandomStream({}));
            }),
            "dirac: shape [6, 4, 3, 3] in 4 groups, expected [out, in, kh, kw] with `out` divided by the groups");
}

TEST(Initialize, NeedsAFan) {
  EXPECT_EQ(message_of<Error>([] { xavier_normal()(Tensor::empty({3}), RandomStream({})); }),
            "initialize: shape [3] has no fan, expected [out, in, ...]");
}

}  // namespace
}  // namespace tern
