#include "tern/kernels/normalization.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tern/core/random.h"
#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern::kernels {
namespace {

TEST(BatchNorm, NormalizesAndUpdatesTheRunningStatistics) {
  const Tensor x = f64({2, 1}, {1, 3});
  const BatchNormParameters parameters{f64({1}, {2}), f64({1}, {1}), f64({1}, {0}), f64({1}, {1})};
  Tensor y = empty_f64({2, 1}), mean = empty_f64({1}), inverse_deviation = empty_f64({1}), none;
  batch_norm_training(x, {}, parameters, {.epsilon = 0}, y, none, mean, inverse_deviation);
  expect_values(y, {-1, 3});
  expect_values(mean, {2});
  expect_values(inverse_deviation, {1});
  expect_values(parameters.running_mean, {0.2});
  expect_values(parameters.running_variance, {0.9 + 0.1 * 2});  // the unbiased variance is 2
  Tensor passed = Tensor::empty({1}, {.dtype = DType::u8});
  batch_norm_training(x, f64({2, 1}, {-5, 4}), parameters, {.epsilon = 3, .relu = true}, y, passed, mean,
                      inverse_deviation);
  expect_values(y, {0, 2 * 0.5 + 1 + 4});
  expect_values(passed, {0b10});
}

TEST(BatchNorm, HasABitForEachElementThatPassesTheRelu) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor passed = Tensor::full({2}, 255, {.dtype = DType::u8});
  store_passed(f64({11}, {1, 0, -1, nan, 5, 0, 0, 1e-300, 0, 2, -0.0}), passed);
  expect_values(passed, {0b10011001, 0b010});
  EXPECT_EQ(message_of<Error>([&] { store_passed(f64({17}, Values(17)), passed); }),
            "batch_norm: bits are u8 of shape [2] for y of shape [17], expected u8 [3]");
}

TEST(BatchNorm, KeepsTheVarianceIfTheFirstElementIsAnOutlier) {
  if (!batch_norm_training.has(Target::cpu)) GTEST_SKIP() << "the reference sums in f32";
  const RandomStream stream({.seed = 3, .purpose = Purpose::test});
  Tensor x = Tensor::empty({2, 1, 224, 224});
  const auto values = x.span<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.1f * stream.normal(i);
  values[0] += 1000;
  const auto variance_of = [](const Tensor& images, DType wide) {
    const BatchNormParameters parameters{Tensor::full({1}, 1, {wide}), Tensor::zeros({1}, {wide}),
                                         Tensor::zeros({1}, {wide}), Tensor::full({1}, 1, {wide})};
    Tensor y = Tensor::empty_like(images), mean = Tensor::empty({1}, {wide}),
           inverse_deviation = Tensor::empty({1}, {wide}), none;
    batch_norm_training(images, {}, parameters, {.momentum = 1}, y, none, mean, inverse_deviation);
    return parameters.running_variance.to_vector<double>()[0];
  };
  const double expected = variance_of(x.to(DType::f64), DType::f64);
  for (const MemoryFormat format : {MemoryFormat::row_major, MemoryFormat::channels_last})
    EXPECT_NEAR(variance_of(x.to(format), DType::f32), expected, 1e-5 * expected) << to_string(format);
}

TEST(BatchNorm, InfersWithTheRunningStatistics) {
  const BatchNormParameters parameters{f64({1}, {2}), f64({1}, {5}), f64({1}, {1}), f64({1}, {4})};
  Tensor y = empty_f64({1, 1, 1, 2});
  batch_norm_inference(f64({1, 1, 1, 2}, {3, -9}), {}, parameters, {.epsilon = 0, .relu = true}, y);
  expect_values(y, {7, 0});
  expect_values(parameters.running_mean, {1});
}

TEST(BatchNorm, SendsGradientsBack) {
  const Tensor x = f64({4, 1}, {0, 0, 2, 2});
  const BatchNormSaved saved{x, f64({4, 1}, {1, 1, 1, 0}), {}, f64({1}, {1}), f64({1}, {1}), f64({1}, {1})};
  Tensor dx = empty_f64({4, 1}), dgamma = empty_f64({1}), dbeta = empty_f64({1}), dresidual = empty_f64({4, 1});
  batch_norm_backward(f64({4, 1}, {4, 0, 0, 7}), saved, true, dx, dgamma, dbeta, dresidual);
  expect_values(dresidual, {4, 0, 0, 0});  // relu stops the last gradient
  expect_values(dbeta, {4});
  expect_values(dgamma, {-4});
  expect_values(dx, {4 - 1 - 1, -1 - 1, -1 + 1, -1 + 1});  // d - 4/4 + x'·4/4 with x' = -1, -1, 1, 1
}

TEST(LocalResponseNorm, DividesByItsNeighbors) {
  const Tensor x = f64({1, 3, 1, 1}, {1, 2, 3});
  Tensor y = empty_f64(x.shape()), denominator = empty_f64(x.shape());
  local_response_norm(x, {.size = 3, .alpha = 3, .beta = 1, .k = 1}, y, denominator);
  expect_values(denominator, {1 + 1 + 4, 1 + 1 + 4 + 9, 1 + 4 + 9});
  expect_values(y, {1.0 / 6, 2.0 / 15, 3.0 / 14});
  local_response_norm(x, {.size = 2, .alpha = 2, .beta = 0.5, .k = 2}, y, denominator);
  expect_values(denominator, {2 + 1, 2 + 1 + 4, 2 + 4 + 9});  // an even size has one neighbour more on the lower side
}

TEST(LocalResponseNorm, SendsGradientsBack) {
  // One channel: y = x / (1 + x²), dy/dx = (1 - x²) / (1 + x²)².
  const Tensor x = f64({1, 1, 1, 1}, {2});
  Tensor dx = empty_f64(x.shape());
  local_response_norm_backward(f64(x.shape(), {25}), x, f64(x.shape(), {5}), {.size = 1, .alpha = 1, .beta = 1}, dx);
  expect_values(dx, {-3});
}

// As PyTorch: a NaN makes its windows NaN. An infinity becomes NaN, and its neighbours 0.
TEST(LocalResponseNorm, ShowsWhatIsNotFinite) {
  const LocalResponseNormOptions options = {.size = 5};
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Tensor x = Tensor::full({1, 8, 1, 1}, 1), y = Tensor::empty(x.shape()), denominator = Tensor::empty(x.shape());
    x.span<float>()[3] = odd;
    local_response_norm(x, options, y, denominator);
    Tensor dx = Tensor::empty(x.shape());
    local_response_norm_backward(Tensor::full(x.shape(), 1), x, denominator, options, dx);
    EXPECT_TRUE(std::isnan(y.span<float>()[3])) << odd;
    for (const size_t c : {1, 2, 4, 5}) {
      if (std::isnan(odd))
        EXPECT_TRUE(std::isnan(y.span<float>()[c])) << c;
      else
        EXPECT_EQ(y.span<float>()[c], 0) << c;
    }
    for (const size_t c : {0, 6, 7}) EXPECT_TRUE(std::isfinite(y.span<float>()[c])) << c;
    EXPECT_TRUE(std::isnan(dx.span<float>()[3])) << odd;
  }
}

}  // namespace
}  // namespace tern::kernels
