#include "tern/kernels/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern::kernels {
namespace {

TEST(Elementwise, Broadcasts) {
  const Tensor a = f64({2, 1}, {6, 12}), b = f64({3}, {1, 2, 3});
  Tensor y = empty_f64({2, 3});
  add(a, b, y);
  expect_values(y, {7, 8, 9, 13, 14, 15});
  subtract(a, b, y);
  expect_values(y, {5, 4, 3, 11, 10, 9});
  multiply(a, b, y);
  expect_values(y, {6, 12, 18, 12, 24, 36});
  divide(a, b, y);
  expect_values(y, {6, 3, 2, 12, 6, 4});
}

TEST(Elementwise, ActivatesAndReturnsSlopes) {
  const Tensor x = f64({3}, {-2, 0, 3}), dy = f64({3}, {1, 1, 1});
  Tensor y = empty_f64({3}), dx = empty_f64({3});
  relu(x, y);
  expect_values(y, {0, 0, 3});
  relu_backward(y, dy, dx);
  expect_values(dx, {0, 0, 1});
  leaky_relu(x, 0.1, y);
  expect_values(y, {-0.2, 0, 3});
  leaky_relu_backward(x, dy, 0.1, dx);
  expect_values(dx, {0.1, 0.1, 1});
  sigmoid(x, y);
  expect_values(y, {0.119202922022118, 0.5, 0.952574126822433});
  sigmoid_backward(y, dy, dx);
  expect_values(dx, {0.104993585403507, 0.25, 0.045176659730912});
  tanh(x, y);
  expect_values(y, {-0.964027580075817, 0, 0.995054753686730});
  tanh_backward(y, dy, dx);
  expect_values(dx, {0.070650824853165, 1, 0.009866037165440});
}

// https://www.tensorflow.org/api_docs/python/tf/nn/gelu prints these values in f32. The same formulas define PyTorch's
// gelu.
TEST(Elementwise, GeluGivesPublishedValues) {
  const Tensor x = f64({5}, {-3, -1, 0, 1, 3});
  Tensor y = empty_f64({5});
  gelu(x, GeluForm::exact, y);
  expect_values(y, {-0.00404951, -0.15865529, 0, 0.8413447, 2.9959507}, 5e-7);
  gelu(x, GeluForm::by_tanh, y);
  expect_values(y, {-0.00363752, -0.15880796, 0, 0.841192, 2.9963627}, 5e-7);
}

// The parity table compares values, and -0 equals 0.
TEST(Elementwise, KeepsTheSignOfZero) {
  Tensor x = Tensor::empty({37}), y = Tensor::empty({37});  // some vectors, and elements behind them
  const auto zeros = x.span<float>();
  for (size_t i = 0; i < zeros.size(); ++i) zeros[i] = i % 3 == 0 ? 0.0f : -0.0f;
  const std::pair<const char*, std::function<void(Target)>> operations[] = {
      {"tanh", [&](Target on) { tanh.on(on)(x, y); }},
      {"scale", [&](Target on) { scale.on(on)(x, 3, y); }},
      {"pow", [&](Target on) { pow.on(on)(x, 3, y); }},
      {"sqrt", [&](Target on) { sqrt.on(on)(x, y); }},
      {"silu", [&](Target on) { silu.on(on)(x, y); }},
      {"exact gelu", [&](Target on) { gelu.on(on)(x, GeluForm::exact, y); }},
      {"gelu by tanh", [&](Target on) { gelu.on(on)(x, GeluForm::by_tanh, y); }},
      {"leaky_relu", [&](Target on) { leaky_relu.on(on)(x, 0.1, y); }}};
  for (const Target target : {Target::reference, Target::cpu})
    for (const auto& [name, operation] : operations) {
      if (!tanh.has(target)) continue;
      y.fill(1);
      operation(target);
      for (size_t i = 0; i < zeros.size(); ++i) {
        EXPECT_EQ(y.span<float>()[i], 0) << name;
        EXPECT_EQ(std::signbit(y.span<float>()[i]), std::signbit(zeros[i])) << name << " on " << to_string(target);
      }
    }
}

TEST(Elementwise, WritesInPlace) {
  Tensor x = f64({2}, {-1, 4});
  scale(x, -2, x);
  expect_values(x, {2, -8});
  relu(x, x);
  expect_values(x, {2, 0});
}

/// Expects the same number, with the same sign, within a few units of rounding.
void expect_same(float found, float expected) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(found)) << found;
    return;
  }
  EXPECT_EQ(std::signbit(found), std::signbit(expected)) << found << ", expected " << expected;
  if (std::isinf(expected))
    EXPECT_EQ(found, expected);
  else
    EXPECT_NEAR(found, expected, 1e-6 * std::abs(expected) + std::numeric_limits<float>::denorm_min());
}

TEST(Pow, IsThatOfTheStandardLibrary) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> bases{nan,   infinity, -infinity, 0,      -0.0f,  1,      -1,     0.3f,
                                 -2.7f, 1e-6f,    -1e-6f,    1e-13f, 1e15f,  1e18f,  -1e18f, 1e20f,
                                 1e25f, 3e38f,    1e-18f,    1e-20f, 1e-25f, 1e-36f, 3e-39f, -3e-39f};
  const Shape shape{std::ssize(bases)};
  const Tensor x = Tensor::from(shape, bases), dy = Tensor::full(shape, 1);
  Tensor y = Tensor::empty(shape), dx = Tensor::empty(shape);
  for (const float exponent : {0.0f, 1.0f, 2.0f, 3.0f, 0.5f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, 1.7f}) {
    pow(x, exponent, y);
    pow_backward(x, dy, exponent, dx);
    for (size_t i = 0; i < bases.size(); ++i) {
      SCOPED_TRACE(join({bases[i], " to the power of ", exponent}));
      expect_same(y.span<float>()[i], std::pow(bases[i], exponent));
      expect_same(dx.span<float>()[i], exponent == 0 ? 0 : exponent * std::pow(bases[i], exponent - 1));
    }
  }
}

TEST(Elementwise, AccumulatesAcrossFormats) {
  const Tensor x = f64({1, 2, 1, 2}, {1, 2, 3, 4});
  Tensor y = f64({1, 2, 1, 2}, {10, 20, 30, 40}).to(MemoryFormat::channels_last);
  accumulate(x, y);
  expect_values(y, {11, 22, 33, 44});
}

TEST(Elementwise, NamesWhatDoesNotMatch) {
  Tensor y = empty_f64({3});
  EXPECT_EQ(message_of<Error>([&] { relu(empty_f64({2}), y); }),
            "relu: f64 [2] (row_major) meets f64 [3] (row_major), expected one shape, dtype and format");
  EXPECT_EQ(message_of<Error>([&] { add(empty_f64({2}), empty_f64({3}), y); }),
            "add: shapes [2] and [3] do not broadcast");
}

}  // namespace
}  // namespace tern::kernels
