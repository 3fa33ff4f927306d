#include <gtest/gtest.h>

#include <cmath>

#include "tern/autograd/functional.h"
#include "tern/autograd/parameter.h"
#include "tern/core/error.h"
#include "tests/support/cuda.h"
#include "tests/support/gradcheck.h"
#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern {
namespace {

/// Three rows with 2, 0 and 1 labels among eleven classes.
const Tensor kLabelsOfRows = integers({4, 10, 0}), kOffsetsOfRows = integers({0, 2, 2, 3});

LinearCrossEntropyOutput loss_of(const Variable& x, const Variable& weight, int64_t chunk) {
  return linear_cross_entropy(x, weight, kLabelsOfRows, kOffsetsOfRows, {.top = 5, .chunk = chunk});
}

TEST(LinearCrossEntropy, IsTheMeanOverRowsOfTheMeanOverLabels) {
  const Tensor input = test::random_tensor({3, 4}, 1), matrix = test::random_tensor({11, 4}, 2);
  const auto x = Variable::leaf(input), weight = Variable::leaf(matrix);
  const Variable log_probabilities = log_softmax(linear(x, weight, {}));
  const Tensor targets = Tensor::zeros({3, 11}, {.dtype = DType::f64});
  targets.data<double>()[4] = targets.data<double>()[10] = 0.5;
  targets.data<double>()[22] = 1;
  const Variable expected = scale(sum(log_probabilities * Variable(targets)), -1.0 / 3);
  expected.backward();
  for (const int64_t chunk : {1, 3, 11, 8192}) {
    const auto own_x = Variable::leaf(input), own_weight = Variable::leaf(matrix);
    const auto [loss, top] = loss_of(own_x, own_weight, chunk);
    EXPECT_NEAR(loss.value().item(), expected.value().item(), 1e-12);
    loss.backward();
    expect_values(own_x.gradient(), x.gradient().to_vector<double>(), 1e-12);
    expect_values(own_weight.gradient(), weight.gradient().to_vector<double>(), 1e-12);
    const auto logits = log_probabilities.value().to_vector<double>();
    for (int64_t n = 0; n < 3; ++n)
      for (int64_t k = 1; k < 5; ++k) {
        const auto logit = [&](int64_t place) {
          return logits[static_cast<size_t>(11 * n + top.to_vector<int64_t>()[static_cast<size_t>(5 * n + place)])];
        };
        EXPECT_GT(logit(k - 1), logit(k));
      }
  }
}

TEST(LinearCrossEntropy, GivesTheWeightsGradientByChunks) {
  const Tensor input = test::random_tensor({3, 4}, 1).to(DType::f32);
  Parameter whole, by_rows;
  for (Parameter* parameter : {&whole, &by_rows}) parameter->set_value(test::random_tensor({11, 4}, 2).to(DType::f32));
  loss_of(input, whole.variable(), 3).loss.backward();
  std::vector<int64_t> firsts;
  std::vector<float> rows;
  by_rows.on_rows([&](int64_t first, const Tensor& values) {
    firsts.push_back(first);
    for (const float value : values.to_vector<float>()) rows.push_back(value);
    by_rows.value().slice(first, first + values.size(0)).fill(0);  // an update inside backward
  });
  const auto x = Variable::leaf(input), again = Variable::leaf(input);
  loss_of(x, by_rows.variable(), 3).loss.backward();
  EXPECT_EQ(firsts, (std::vector<int64_t>{0, 3, 6, 9}));
  EXPECT_EQ(rows, whole.gradient().to_vector<float>());
  EXPECT_FALSE(by_rows.gradient().defined());
  loss_of(again, whole.variable(), 3).loss.backward();
  EXPECT_EQ(x.gradient().to_vector<float>(), again.gradient().to_vector<float>()) << "the update came too early";
}

// Two uses of a weight have one gradient, which no use may update before the other has read the weight.
TEST(LinearCrossEntropy, AWeightWithTwoUsesGetsAWholeGradient) {
  const Tensor input = test::random_tensor({3, 4}, 1);
  Parameter parameter;
  parameter.set_value(test::random_tensor({11, 4}, 2));
  int calls = 0;
  parameter.on_rows([&](int64_t, const Tensor&) { ++calls; });
  const Variable weight = parameter.variable();
  (loss_of(input, weight, 3).loss + sum(weight)).backward();
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(parameter.gradient().defined());
}

TEST(LinearCrossEntropy, RowsOfManyRanksAddUp) {
  const Tensor input = test::random_tensor({3, 4}, 1), matrix = test::random_tensor({11, 4}, 2),
               others = test::random_tensor({3, 11}, 3);
  int64_t first = 0;
  const auto complete = [&](const Tensor& logits) {
    for (int64_t n = 0; n < 3; ++n)
      for (int64_t c = 0; c < logits.size(1); ++c)
        logits.data<double>()[n * logits.size(1) + c] += others.data<double>()[11 * n + first + c];
    first += logits.size(1);
  };
  const auto found =
      linear_cross_entropy(input, matrix, kLabelsOfRows, kOffsetsOfRows, {.top = 1, .chunk = 4, .complete = complete});
  const auto logits = (linear(input, matrix, {}) + Variable(others)).value();
  const Tensor unit = Tensor::zeros({11, 11}, {.dtype = DType::f64});
  for (int64_t i = 0; i < 11; ++i) unit.data<double>()[12 * i] = 1;
  const auto expected = linear_cross_entropy(logits, unit, kLabelsOfRows, kOffsetsOfRows, {.top = 1});
  EXPECT_NEAR(found.loss.value().item(), expected.loss.value().item(), 1e-12);
  EXPECT_EQ(found.top.to_vector<int64_t>(), expected.top.to_vector<int64_t>());
}

TEST(LinearCrossEntropy, ABf16InputHasAnF32LossAndABf16Gradient) {
  const auto x = Variable::leaf(Tensor::full({3, 4}, 0.5, {.dtype = DType::bf16})),
             weight = Variable::leaf(Tensor::full({11, 4}, 0.25));
  const Variable loss = loss_of(x, weight, 4).loss;
  EXPECT_EQ(loss.value().dtype(), DType::f32);
  EXPECT_NEAR(loss.value().item(), std::log(11.0) * 2 / 3, 1e-5);
  loss.backward();
  EXPECT_EQ(x.gradient().dtype(), DType::bf16);
  EXPECT_EQ(weight.gradient().dtype(), DType::f32);
}

TEST(LinearCrossEntropy, SaysWhatDoesNotFit) {
  const Tensor x = Tensor::zeros({3, 4}), weight = Tensor::zeros({11, 4});
  const auto message = [&](const Tensor& labels, const Tensor& offsets) {
    return message_of<Error>([&] { linear_cross_entropy(x, weight, labels, offsets); });
  };
  EXPECT_EQ(message(kLabelsOfRows, kOffsetsOfRows), "");
  EXPECT_EQ(message(kLabelsOfRows, integers({0, 3})),
            "linear_cross_entropy: labels i64 of shape [3], offsets i64 of shape [2], expected i64 [labels] and i64 "
            "[4]");
  EXPECT_EQ(message(kLabelsOfRows, integers({0, 2, 1, 3})),
            "linear_cross_entropy: offset 2 falls to 1, expected no less than the one before");
  EXPECT_EQ(message(kLabelsOfRows, integers({0, 2, 2, 4})),
            "linear_cross_entropy: offsets from 0 to 4, expected from 0 to 3, the number of indices");
  EXPECT_EQ(message(integers({4, 11, 0}), kOffsetsOfRows),
            "linear_cross_entropy: element 1 has index 11, expected 0 to 10 for 11 columns");
  EXPECT_EQ(message_of<Error>([&] {
              linear_cross_entropy(Tensor::zeros({0, 4}), weight, integers({}), integers({0}));
            }),
            "linear_cross_entropy: input of shape [0, 4], weight of shape [11, 4], expected one row and one class or "
            "more");
}

TEST(LinearCrossEntropy, RefusesCpuAndCudaTogether) {
  if (const auto reason = test::why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
  const Tensor x = Tensor::zeros({3, 4}), weight = Tensor::zeros({11, 4});
  EXPECT_EQ(message_of<Error>([&] {
              linear_cross_entropy(x, weight, kLabelsOfRows.to(Device{DeviceType::cuda, 0}), kOffsetsOfRows);
            }),
            "linear_cross_entropy: labels on cuda:0, offsets on cpu, weight on cpu, input on cpu, expected one device");
}

}  // namespace
}  // namespace tern
