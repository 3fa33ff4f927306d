#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

TEST(Arithmetic, TakesANumberOnEitherSide) {
  const Variable x = f64({3}, {1, 2, 4});
  expect_values((x + 1).value(), {2, 3, 5});
  expect_values((1 + x).value(), {2, 3, 5});
  expect_values((x - 1).value(), {0, 1, 3});
  expect_values((1 - x).value(), {0, -1, -3});
  expect_values((x * 2).value(), {2, 4, 8});
  expect_values((2 * x).value(), {2, 4, 8});
  expect_values((x / 4).value(), {0.25, 0.5, 1});
  expect_values((4 / x).value(), {4, 2, 1});
  expect_values((-x).value(), {-1, -2, -4});
  expect_values((f64({}, {3}) + Variable(f64({}, {4}))).value(), {7});
}

TEST(Arithmetic, EqualElementsShareTheGradientOfTheGreater) {
  const auto a = Variable::leaf(f64({4}, {1, 2, 3, kNan})), b = Variable::leaf(f64({4}, {2, 2, 2, 1}));
  sum(slice(maximum(a, b), 0, 0, 3)).backward();
  expect_values(a.gradient(), {0, 0.5, 1, 0});
  expect_values(b.gradient(), {1, 0.5, 0, 0});
  EXPECT_TRUE(std::isnan(maximum(a, b).value().to_vector<double>()[3]));
  EXPECT_TRUE(std::isnan(minimum(b, a).value().to_vector<double>()[3]));
}

TEST(Arithmetic, SelectsByMask) {
  const auto a = Variable::leaf(f64({2, 2}, {1, 2, 3, 4})), b = Variable::leaf(f64({}, {9}));
  const Tensor mask = Tensor::from<uint8_t>({2}, {0, 255});
  const Variable y = select(mask, a, b);
  expect_values(y.value(), {9, 2, 9, 4});
  sum(y * y).backward();
  expect_values(a.gradient(), {0, 4, 0, 8});
  expect_values(b.gradient(), {36});
  EXPECT_EQ(message_of<Error>([&] { select(a.value(), a, b); }), "select: mask of f64, expected u8");
  EXPECT_EQ(message_of<Error>([&] { select(mask, a, Variable(Tensor::zeros({2}))); }),
            "select: elements are f64 in [2, 2] and f32 in [2], expected one dtype");
}

TEST(Arithmetic, ClampsAndKeepsNaN) {
  const auto x = Variable::leaf(f64({5}, {-2, -1, 0.5, 1, 3}));
  const Variable y = clamp(x, -1, 1);
  expect_values(y.value(), {-1, -1, 0.5, 1, 1});
  sum(y).backward();
  expect_values(x.gradient(), {0, 1, 1, 1, 0});
  EXPECT_TRUE(std::isnan(clamp(f64({}, {kNan}), 0).value().item()));
  EXPECT_EQ(clamp(f64({}, {kInfinity}), 0).value().item(), kInfinity);
  EXPECT_EQ(message_of<Error>([&] { clamp(x, 2, 1); }), "clamp: limits 2 and 1, expected low <= high");
  EXPECT_EQ(message_of<Error>([&] { clamp(x, kNan, 1); }), "clamp: limits nan and 1, expected low <= high");
}

TEST(Reduction, FindsTheGreatest) {
  const auto x = Variable::leaf(f64({2, 3}, {1, 5, 5, -2, -7, -2}));
  expect_values(max(x).value(), {5});
  expect_values(max(x, {1}).value(), {5, -2});
  expect_values(min(x, {0}, true).value(), {-2, -7, -2});
  EXPECT_EQ(min(x, {0}, true).shape(), (Shape{1, 3}));
  expect_values(argmax(x.value()), {1, 0});
  expect_values(argmax(x.value(), 0, true), {0, 0, 0});
  EXPECT_EQ(argmax(x.value(), 0, true).shape(), (Shape{1, 3}));
  expect_values(argmax(f64({4}, {1, kNan, 3, kNan})), {1});
  sum(max(x, {1})).backward();
  expect_values(x.gradient(), {0, 0.5, 0.5, 0.5, 0, 0.5});
  EXPECT_EQ(message_of<Error>([] {
              max(Variable(empty_f64({2, 0})), {1});
            }),
            "max: input of shape [2, 0], each result is of no elements, expected one or more");
}

TEST(Reduction, ComputesVarianceAndLogarithmOfSums) {
  const Variable x = f64({2, 3}, {1, 2, 6, 4, 4, 4});
  expect_values(variance(x, {1}).value(), {7, 0});
  expect_values(variance(x, {1}, false, 0).value(), {14.0 / 3, 0});
  EXPECT_EQ(message_of<Error>([&] { variance(slice(x, 1, 0, 1), {1}); }),
            "variance: input of shape [2, 1], each result is of 1 elements, expected more than the correction, 1");
  const Variable number = variance(f64({}, {5}), {0}, false, 0);
  EXPECT_EQ(number.shape(), Shape());
  expect_values(number.value(), {0});
  expect_values(logsumexp(f64({2, 2}, {1000, 1000, -1000, -1000}), {1}).value(),
                {1000 + std::log(2), -1000 + std::log(2)});
  EXPECT_EQ(logsumexp(f64({2}, {-kInfinity, -kInfinity}), {0}).value().item(), -kInfinity);
  EXPECT_EQ(logsumexp(f64({2}, {kInfinity, 0}), {0}).value().item(), kInfinity);
}

TEST(Layout, ChangesShapesAsPyTorch) {
  const Variable x = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_values(permute(x, {1, 0}).value(), {1, 4, 2, 5, 3, 6});
  EXPECT_EQ(unsqueeze(x, -1).shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(squeeze(unsqueeze(x, 0), 0).shape(), (Shape{2, 3}));
  EXPECT_EQ(squeeze(sum(x), -1).shape(), Shape());
  expect_values(expand(f64({2, 1}, {1, 2}), {-1, 3}).value(), {1, 1, 1, 2, 2, 2});
  expect_values(stack({x, x}, 1).value(), {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6});
  const auto parts = split(x, {1, 2}, 1);
  expect_values(parts[0].value(), {1, 4});
  expect_values(parts[1].value(), {2, 3, 5, 6});
  const Tensor indices = Tensor::from<int64_t>({2, 2}, {1, 0, 1, 1});
  expect_values(embedding(indices, x).value(), {4, 5, 6, 1, 2, 3, 4, 5, 6, 4, 5, 6});
  EXPECT_EQ(embedding(indices, x).shape(), (Shape{2, 2, 3}));
}

TEST(Layout, NamesWhatDoesNotFit) {
  const Variable x = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  const std::pair<std::function<void()>, const char*> rows[] = {
      {[&] {
         permute(x, {0, 0});
       },
       "permute: 2 dimensions for shape [2, 3], expected each of its dimensions once"},
      {[&] { permute(x, {0}); }, "permute: 1 dimensions for shape [2, 3], expected each of its dimensions once"},
      {[&] { squeeze(x, 1); }, "squeeze: dimension 1 of [2, 3] has extent 3, expected 1"},
      {[&] { unsqueeze(x, 3); }, "unsqueeze: dimension 3 of a result with 3 dimensions, expected -3 to 2"},
      {[&] {
         expand(x, {2, 6});
       },
       "expand: [2, 3] to [2, 6], expected extents that repeat"},
      {[&] { expand(x, {3}); }, "expand: [2, 3] to [3], expected extents that repeat"},
      {[&] {
         stack({x, slice(x, 0, 0, 1)}, 0);
       },
       "stack: [1, 3] beside [2, 3], expected one shape"},
      {[&] {
         split(x, {1, 1}, 1);
       },
       "split: extents that sum to 2, expected 3, the extent of dimension 1 of [2, 3]"},
      {[&] { reflection_pad2d(x, {.left = 3}); },
       "reflection_pad2d: border of 0, 0, 3, 0 around [2, 3], expected top and bottom from 0 to below H, left and "
       "right "
       "from 0 to below W"},
      {[&] { embedding(Tensor::zeros({2}), x); },
       "embedding: indices f32 of shape [2], expected i64 with at most 7 dimensions"},
      {[&] { embedding(Tensor::full({2}, 2, {DType::i64}), x); },
       "embedding: element 0 has index 2, expected 0 to 1 for 2 rows"},
  };
  for (const auto& [call, sentence] : rows) EXPECT_EQ(message_of<Error>(call), sentence);
}

}  // namespace
}  // namespace tern
