#include <gtest/gtest.h>

#include <cmath>

#include "tern/kernels/loss.h"
#include "tests/support/cuda.h"
#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern::kernels {
namespace {

const double kLog3 = std::log(3.0), kLog4 = std::log(4.0);

TEST(Softmax, DividesByTheSum) {
  const Tensor x = f64({1, 2}, {1000, 1000 + kLog3});
  Tensor y = empty_f64({1, 2}), dx = empty_f64({1, 2});
  softmax(x, y);
  expect_values(y, {0.25, 0.75});
  softmax_backward(y, f64({1, 2}, {4, 0}), dx);
  expect_values(dx, {0.75, -0.75});  // y·(dy - 1)
  log_softmax(x, y);
  expect_values(y, {-kLog4, kLog3 - kLog4});
  log_softmax_backward(y, f64({1, 2}, {4, 0}), dx);
  expect_values(dx, {3, -3});  // dy - 4·softmax
}

TEST(CrossEntropy, AveragesOverRows) {
  const Tensor x = f64({2, 2}, {0, kLog3, 5, 5}), labels = Tensor::from({2}, std::vector<int64_t>{1, 0});
  Tensor loss = empty_f64({}), divisor = empty_f64({}), probabilities = empty_f64({2, 2}), dx = empty_f64({2, 2});
  cross_entropy(x, {labels}, loss, divisor, probabilities);
  expect_values(loss, {-(kLog3 - kLog4 - std::log(2.0)) / 2});
  expect_values(divisor, {2});
  expect_values(probabilities, {0.25, 0.75, 0.5, 0.5});
  cross_entropy(x, {labels, 0.2}, loss, divisor, probabilities);
  expect_values(loss, {-(0.1 * -kLog4 + 0.9 * (kLog3 - kLog4) - std::log(2.0)) / 2});
  cross_entropy_backward(probabilities, {labels, 0.2}, f64({}, {2}), divisor, dx);
  expect_values(dx, {0.25 - 0.1, 0.75 - 0.9, 0.5 - 0.9, 0.5 - 0.1});
}

TEST(CrossEntropy, WeighsClassesAndIgnoresALabel) {
  const Tensor x = f64({3, 2}, {0, kLog3, 5, 5, 1, 2}), labels = Tensor::from<int64_t>({3}, {1, 0, -100});
  const LabelTargets targets{labels, 0, f64({2}, {3, 0.5}), -100};
  const double first = -0.5 * (kLog3 - kLog4), second = 3 * std::log(2.0);
  Tensor each = empty_f64({3}), loss = empty_f64({}), divisor = empty_f64({}), none;
  Tensor probabilities = empty_f64({3, 2}), dx = empty_f64({3, 2});
  cross_entropy(x, targets, each, none, probabilities);
  expect_values(each, {first, second, 0});
  expect_values(probabilities, {0.25, 0.75, 0.5, 0.5, 0, 0});
  cross_entropy(x, targets, loss, none, probabilities);
  expect_values(loss, {first + second});
  cross_entropy(x, targets, loss, divisor, probabilities);
  expect_values(divisor, {3.5});
  expect_values(loss, {(first + second) / 3.5});
  cross_entropy_backward(probabilities, targets, f64({3}, {2, 1, 1}), none, dx);
  expect_values(dx, {0.25, -0.25, -1.5, 1.5, 0, 0});
  cross_entropy_backward(probabilities, targets, f64({}, {7}), divisor, dx);
  expect_values(dx, {0.25, -0.25, -3, 3, 0, 0});
}

TEST(CrossEntropy, NamesALabelOutOfRange) {
  for (DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = Tensor::zeros({3, 10}, {.dtype = dtype});
    Tensor loss = Tensor::empty({}, {.dtype = dtype}), probabilities = Tensor::empty_like(x), none;
    for (int64_t label : {-1, 10})
      for (const std::optional<int64_t>& ignored : {std::optional<int64_t>(), std::optional<int64_t>(0)}) {
        const Tensor labels = Tensor::from({3}, std::vector<int64_t>{0, 9, label});
        EXPECT_EQ(message_of<Error>(
                      [&] { cross_entropy(x, {.labels = labels, .ignored = ignored}, loss, none, probabilities); }),
                  "cross_entropy: row 2 has label " + std::to_string(label) + ", expected 0 to 9 for 10 classes");
      }
  }
}

// The host does not wait for the device to read its labels.
TEST(CudaCrossEntropy, GivesNaNForALabelOutOfRange) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  constexpr Device kGpu{DeviceType::cuda, 0};
  const Tensor x = Tensor::zeros({4, 10}, {.device = kGpu}), labels = integers({0, 10, 3, -1}).to(kGpu);
  for (const Tensor& weights : {Tensor(), Tensor::full({10}, 2, {.device = kGpu})}) {
    const LabelTargets targets{labels, 0, weights, 3};
    Tensor each = Tensor::empty({4}, {.device = kGpu}), mean = Tensor::empty({}, {.device = kGpu}), none,
           divisor = Tensor::empty({}, {DType::f64, kGpu}), probabilities = Tensor::empty_like(x);
    cross_entropy(x, targets, each, none, probabilities);
    const Values losses = each.to_vector<double>();
    EXPECT_NEAR(losses[0], std::log(10.0) * (weights.defined() ? 2 : 1), 1e-5);
    EXPECT_TRUE(std::isnan(losses[1]) && std::isnan(losses[3]));
    EXPECT_EQ(losses[2], 0);
    cross_entropy(x, targets, mean, divisor, probabilities);
    EXPECT_TRUE(std::isnan(mean.item()));
    Tensor dx = Tensor::empty_like(x);
    cross_entropy_backward(probabilities, targets, Tensor::full({4}, 1, {.device = kGpu}), none, dx);
    const Values gradient = dx.to_vector<double>();
    for (size_t i = 0; i < gradient.size(); ++i) EXPECT_EQ(std::isnan(gradient[i]), i / 10 % 2 == 1) << i;
  }
}

TEST(MeanSquaredError, AveragesOverElements) {
  const Tensor x = f64({2}, {1, 2}), target = f64({2}, {3, 2});
  Tensor loss = empty_f64({}), dx = empty_f64({2});
  mse(x, target, loss);
  expect_values(loss, {2});
  mse_backward(x, target, f64({}, {3}), dx);
  expect_values(dx, {-6, 0});
}

TEST(BinaryCrossEntropy, AveragesOverElements) {
  const Tensor x = f64({2, 2}, {0, kLog3, -kLog3, 1000}), target = f64({2, 2}, {0.5, 1, 0.25, 0});
  Tensor loss = empty_f64({}), dx = empty_f64({2, 2});
  binary_cross_entropy(x, target, loss);  // the third row: -0.25 log 0.25 - 0.75 log 0.75
  expect_values(loss, {(std::log(2.0) + (kLog4 - kLog3) + (0.25 * kLog4 + 0.75 * (kLog4 - kLog3)) + 1000) / 4});
  binary_cross_entropy_backward(x, target, f64({}, {2}), dx);
  expect_values(dx, {0, -0.125, 0, 0.5});
  Tensor each = empty_f64({2, 2});
  binary_cross_entropy(x, target, each);
  expect_values(each, {std::log(2.0), kLog4 - kLog3, 0.25 * kLog4 + 0.75 * (kLog4 - kLog3), 1000});
  binary_cross_entropy_backward(x, target, f64({2, 2}, {1, 2, 3, 4}), dx);
  expect_values(dx, {0, -0.5, 0, 4});
}

// As PyTorch, which uses log1p: e^-20 is far below the precision of 1 + e^-20.
TEST(BinaryCrossEntropy, IsPreciseIfThePredictionIsCertain) {
  for (const Target on : {Target::reference, Target::cpu}) {
    if (!binary_cross_entropy.has(on)) continue;
    Tensor loss = Tensor::empty({});
    binary_cross_entropy.on(on)(Tensor::full({1}, -20), Tensor::zeros({1}), loss);
    EXPECT_NEAR(loss.item(), std::exp(-20.0), 1e-6 * std::exp(-20.0)) << to_string(on);
  }
}

TEST(BinaryCrossEntropy, NamesTargetsThatDoNotFit) {
  Tensor loss = Tensor::empty({});
  for (const Target on : {Target::reference, Target::cpu})
    if (binary_cross_entropy.has(on)) {
      EXPECT_EQ(message_of<Error>([&] { binary_cross_entropy.on(on)(Tensor::zeros({2}), Tensor::zeros({3}), loss); }),
                "binary_cross_entropy: logits f32 [2] row_major, targets f32 [3] row_major, expected targets of f32 in "
                "the same shape and format");
    }
}

}  // namespace
}  // namespace tern::kernels
