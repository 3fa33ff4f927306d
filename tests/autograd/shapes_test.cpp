#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tests/support/gradcheck.h"
#include "tests/support/message_of.h"
#include "tests/support/values.h"

// Ranks and shapes that PyTorch takes, beside the ones that the kernels compute.

namespace tern {
namespace {

Variable random(const Shape& shape, uint32_t number = 0) { return Variable::leaf(test::random_tensor(shape, number)); }

/// Expects the same shape and elements.
void expect_same(const Variable& found, const Variable& expected) {
  EXPECT_EQ(found.shape(), expected.shape());
  expect_values(found.value(), expected.value().to_vector<double>());
}

TEST(Shapes, OneImageIsABatchWithoutItsDimension) {
  const Variable x = random({3, 8, 9}), batch = reshape(x, {1, 3, 8, 9}), w = random({4, 3, 3, 3}, 1);
  expect_same(conv2d(x, w, {}, {.padding = 1}), squeeze(conv2d(batch, w, {}, {.padding = 1}), 0));
  expect_same(max_pool2d(x), squeeze(max_pool2d(batch), 0));
  expect_same(average_pool2d(x), squeeze(average_pool2d(batch), 0));
  expect_same(global_average_pool2d(x), squeeze(global_average_pool2d(batch), 0));
}

TEST(Shapes, PoolingRefusesImagesWithoutPixels) {
  for (const Shape& shape : {Shape{1, 3, 0, 4}, Shape{1, 3, 4, 0}}) {
    const Variable x = Tensor::empty(shape);
    EXPECT_THROW(max_pool2d(x, {.window = 2, .padding = 1}), Error) << to_string(shape);
    EXPECT_THROW(average_pool2d(x, {.window = 2, .padding = 1}), Error) << to_string(shape);
  }
}

TEST(Shapes, LinearTakesAnyRankAndAVectorOfWeights) {
  const Variable x = random({2, 3, 5}), rows = reshape(x, {6, 5}), w = random({4, 5}, 1), bias = random({4}, 2);
  expect_same(linear(x, w, bias), reshape(linear(rows, w, bias), {2, 3, 4}));
  expect_same(linear(slice(rows, 0, 0, 0), w, bias), Variable(empty_f64({0, 4})));
  const Variable vector = random({5}, 3), number = random({}, 4);
  expect_same(linear(vector, w, bias), squeeze(linear(unsqueeze(vector, 0), w, bias), 0));
  expect_same(linear(x, vector, number), matmul(x, vector) + number);
  expect_same(linear(vector, vector, {}), sum(vector * vector));
}

TEST(Shapes, MatmulTakesVectorsAndRepeatsLeadingDimensions) {
  const Variable a = random({4, 5}), b = random({5, 3}, 1), row = random({4}, 2), column = random({5}, 3);
  expect_same(matmul(row, a), squeeze(matmul(unsqueeze(row, 0), a), 0));
  expect_same(matmul(a, column), squeeze(matmul(a, unsqueeze(column, 1)), 1));
  expect_same(matmul(column, column), sum(column * column));
  const Variable many = random({2, 1, 4, 5}, 4), more = random({3, 5, 2}, 5);
  const Variable y = matmul(many, more);
  EXPECT_EQ(y.shape(), (Shape{2, 3, 4, 2}));
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 3; ++j)
      expect_same(reshape(slice(slice(y, 0, i, i + 1), 1, j, j + 1), {4, 2}),
                  matmul(reshape(slice(many, 0, i, i + 1), {4, 5}), reshape(slice(more, 0, j, j + 1), {5, 2})));
  expect_same(matmul(row, transpose(many, 2, 3), {.transpose_b = true}),
              reshape(matmul(row, reshape(many, {2, 4, 5})), {2, 1, 5}));
  EXPECT_EQ(message_of<Error>([&] {
              matmul(random({2, 4, 5}), random({3, 5, 2}));
            }),
            "matmul: shapes [2] and [3] do not broadcast");
  EXPECT_EQ(message_of<Error>([&] { matmul(row, b); }),
            "matmul: [1, 4] times [5, 3], expected [..., m, k] times [..., k, n] or [k, n]");
}

TEST(Shapes, GradientsFlowThroughThem) {
  test::expect_gradients([](const auto& in) { return matmul(in[0], in[1]); },
                         {test::random_tensor({2, 1, 2, 3}, 0), test::random_tensor({3, 3, 2}, 1)});
  test::expect_gradients([](const auto& in) { return matmul(in[0], in[1]); },
                         {test::random_tensor({3}, 0), test::random_tensor({2, 3, 2}, 1)});
  test::expect_gradients([](const auto& in) { return linear(in[0], in[1], in[2]); },
                         {test::random_tensor({2, 2, 3}, 0), test::random_tensor({3}, 1), test::random_tensor({}, 2)});
  test::expect_gradients([](const auto& in) { return conv2d(in[0], in[1], {}); },
                         {test::random_tensor({2, 4, 4}, 0), test::random_tensor({3, 2, 3, 3}, 1)});
  const Tensor labels = Tensor::from<int64_t>({2, 3}, {0, 3, 2, 1, 1, 0});
  test::expect_gradients([&](const auto& in) { return cross_entropy(in[0], labels, {.smoothing = 0.1}); },
                         {test::random_tensor({2, 4, 3}, 0)});
}

TEST(Shapes, NormalizationsTakeSequencesAndVolumes) {
  const Variable x = random({4, 3, 5}), gamma = random({3}, 1), beta = random({3}, 2);
  const auto state = [&] { return BatchNormState{gamma, beta, f64({3}, {1, 2, 3}), f64({3}, {1, 2, 3})}; };
  for (const bool training : {true, false}) {
    const BatchNormState one = state(), other = state();
    expect_same(batch_norm(x, one, {}, training, x),
                squeeze(batch_norm(unsqueeze(x, 3), other, {}, training, unsqueeze(x, 3)), 3));
    expect_values(one.running_mean, other.running_mean.to_vector<double>());
  }
  const Variable volume = random({2, 7, 2, 3, 2});
  expect_same(local_response_norm(x), squeeze(local_response_norm(unsqueeze(x, 2)), 2));
  expect_same(local_response_norm(volume),
              reshape(local_response_norm(reshape(volume, {2, 7, 3, 4})), {2, 7, 2, 3, 2}));
}

TEST(Shapes, CrossEntropyTakesALabelForEachPlace) {
  const Variable logits = random({2, 4, 3, 2});
  const Tensor labels = Tensor::from<int64_t>({2, 3, 2}, {0, 3, 2, 1, 1, 0, 3, 3, 2, 0, 1, 2});
  expect_same(cross_entropy(logits, labels),
              cross_entropy(reshape(permute(logits, {0, 2, 3, 1}), {12, 4}), labels.reshape({12})));
  expect_same(cross_entropy(random({4}), Tensor::full({}, 2, {DType::i64})),
              cross_entropy(reshape(random({4}), {1, 4}), Tensor::full({1}, 2, {DType::i64})));
  EXPECT_EQ(message_of<Error>([&] {
              cross_entropy(logits, labels.reshape({2, 2, 3}));
            }),
            "cross_entropy: logits of shape [2, 4, 3, 2], targets i64 of shape [2, 2, 3], expected i64 [2, 3, 2] or "
            "probabilities of shape [2, 4, 3, 2]");
}

// As in PyTorch, a number has dimension 0.
TEST(Shapes, ANumberHasOneDimensionForReductions) {
  const Variable x = Variable::leaf(f64({}, {3}));
  for (const int dimension : {0, -1}) {
    expect_same(sum(x, {dimension}), x);
    expect_same(mean(x, {dimension}, true), x);
    expect_same(max(x, {dimension}), x);
    expect_same(logsumexp(x, {dimension}), x);
    expect_same(transpose(x, 0, dimension), x);
  }
  EXPECT_EQ(argmax(x.value()).item(), 0);
  expect_same(softmax(x), Variable(f64({}, {1})));
  expect_same(log_softmax(x), Variable(f64({}, {0})));
  sum(x, {0}).backward();
  expect_values(x.gradient(), {1});
  EXPECT_EQ(message_of<Error>([&] { sum(x, {1}); }), "sum: dimension 1 of [1] does not exist");
}

TEST(Shapes, DropoutMayDropEverything) {
  const Variable x = random({4, 3});
  const Tensor samples = Tensor::from<int64_t>({4}, {7, 3, 900, 12});
  const Variable y = dropout(x, samples, {.seed = 5, .probability = 1});
  expect_same(y, Variable(Tensor::zeros({4, 3}, {DType::f64})));
  sum(y).backward();
  expect_values(x.gradient(), Values(12, 0));
}

TEST(Shapes, DropoutTakesANumberAsOneRow) {
  const Variable x = random({});
  const Tensor samples = Tensor::from<int64_t>({1}, {3});
  const DropoutDraw draw = {.seed = 5, .probability = 0.5};
  expect_same(dropout(x, samples, draw), reshape(dropout(reshape(x, {1}), samples, draw), Shape()));
}

TEST(Shapes, AttentionRepeatsLeadingDimensions) {
  const Variable q = random({2, 3, 4}), k = random({5, 1, 6, 4}, 1), v = random({6, 4}, 2);
  const Variable repeated = attention(expand(q, {5, 2, 3, 4}), expand(k, {5, 2, 6, 4}), expand(v, {5, 2, 6, 4}));
  expect_same(attention(q, k, v), repeated);
  test::expect_gradients(
      [](const auto& in) { return attention(in[0], in[1], in[2]); },
      {test::random_tensor({3, 2}, 0), test::random_tensor({2, 4, 2}, 1), test::random_tensor({2, 1, 4, 2}, 2)});
}

TEST(Shapes, NegativePaddingTakesElementsAway) {
  const Variable x = random({3, 5});
  expect_same(pad(x, {{-1, 2}, {1, -3}}, 0.5), pad(slice(slice(x, 0, 1, 3), 1, 0, 2), {{0, 2}, {1, 0}}, 0.5));
  expect_same(pad(x, {{-1, -2}, {0, 0}}), Variable(empty_f64({0, 5})));
  test::expect_gradients(
      [](const auto& in) {
        return pad(in[0], {{-1, 2}, {1, -3}});
      },
      {test::random_tensor({3, 5}, 0)});
  EXPECT_EQ(message_of<Error>([&] {
              pad(x, {{-2, -2}, {0, 0}});
            }),
            "pad: -2 and -2 around dimension 0 of [3, 5], expected to take away no more than it has");
}

TEST(Shapes, ConcatTakesVectorsOfNothing) {
  const Variable x = random({2, 3}), none = Variable::leaf(empty_f64({0}));
  expect_same(concat({none, x, none}, 1), x);
  expect_same(concat({none, none}, 0), Variable(empty_f64({0})));
}

TEST(Shapes, ConcatAndStackTakeManyInputsWithGradients) {
  std::vector<Variable> inputs;
  for (uint32_t i = 0; i < 100; ++i) inputs.push_back(random({2, 3}, i));
  const auto of = [](const Variable& x) { return Variable(x.gradient()); };
  const Variable weights = test::random_tensor({2, 100, 3}, 200);
  const Variable stacked = stack(inputs, 1);
  expect_same(stacked, reshape(concat(inputs, 1), {2, 100, 3}));
  sum(stacked * weights).backward();
  for (int64_t i = 0; i < 100; ++i) {
    const Variable& x = inputs[static_cast<size_t>(i)];
    expect_same(squeeze(slice(stacked, 1, i, i + 1), 1), x);
    expect_same(of(x), squeeze(slice(weights, 1, i, i + 1), 1));
  }
}

TEST(Shapes, LayerNormTakesParametersOfAnyFormat) {
  const Variable x = random({1, 2, 3, 2}), gamma = random({1, 2, 3, 2}, 1), beta = random({1, 2, 3, 2}, 2);
  const auto channels_last = [](const Variable& v) { return Variable(v.value().to(MemoryFormat::channels_last)); };
  expect_same(layer_norm(x, {1, 2, 3, 2}, channels_last(gamma), channels_last(beta)),
              layer_norm(x, {1, 2, 3, 2}, gamma, beta));
}

// The mirror sees the elements that are taken away at the other side.
TEST(Shapes, ANegativeBorderTakesElementsAwayAfterTheReflection) {
  const Variable x = random({2, 4, 4});
  expect_same(reflection_pad2d(x, {.top = -2, .bottom = 3, .left = -1, .right = 2}),
              slice(slice(reflection_pad2d(x, {.bottom = 3, .right = 2}), 1, 2, 7), 2, 1, 6));
  test::expect_gradients([](const auto& in) { return reflection_pad2d(in[0], {.top = -1, .right = 2}); },
                         {test::random_tensor({3, 4}, 0)});
}

// Else the layers behind it would be slow.
TEST(Shapes, AMirroredBorderKeepsTheFormat) {
  const Variable x = random({2, 3, 4, 5}), last(x.value().to(MemoryFormat::channels_last));
  const Border border = {.top = 1, .left = 2};
  EXPECT_EQ(reflection_pad2d(x, border).value().format(), MemoryFormat::row_major);
  EXPECT_EQ(reflection_pad2d(last, border).value().format(), MemoryFormat::channels_last);
  expect_same(reflection_pad2d(last, border), reflection_pad2d(x, border));
}

// The kernels of the CPU compute in channels-last. So a network is as fast for images of the other format.
TEST(Shapes, ConvolutionsGiveChannelsLast) {
  const Variable x = random({2, 3, 4, 5}), last(x.value().to(MemoryFormat::channels_last)), w = random({2, 3, 3, 3}, 1);
  const Variable y = conv2d(x, w, {}, {.padding = 1});
  EXPECT_EQ(y.value().format(), MemoryFormat::channels_last);
  expect_same(y, conv2d(last, w, {}, {.padding = 1}));
  const Variable v = random({3, 2, 3, 3}, 2), larger = conv_transpose2d(x, v, {});
  EXPECT_EQ(larger.value().format(), MemoryFormat::channels_last);
  expect_same(larger, conv_transpose2d(last, v, {}));
}

// PyTorch takes as many as the greater of stride and dilation allows. What is added beyond the stride has products of
// its own if there is padding.
TEST(Shapes, TransposedConvolutionAddsUpToTheDilation) {
  const Variable x = random({1, 2, 3, 3}), w = random({2, 2, 3, 3}, 1);
  const ConvGeometry geometry = {.stride = 2, .padding = 3, .dilation = 4};
  const Variable all = conv_transpose2d(x, w, {}, {.stride = 2, .padding = 0, .dilation = 4});
  const Variable y = conv_transpose2d(x, w, {}, geometry, {3, 2});
  EXPECT_EQ(y.shape(), (Shape{1, 2, 10, 9}));
  expect_same(y, slice(slice(all, 2, 3, 13), 3, 3, 12));
  EXPECT_EQ(message_of<Error>([&] {
              conv_transpose2d(x, w, {}, geometry, {4, 0});
            }),
            "conv_transpose2d: 4 rows and 0 columns are added, expected 0 or more, and fewer than the stride or the "
            "dilation");
}

// Windows of 2 to 3 columns over 7, and of 2 rows over 3. The element is in the upper windows of columns 1 and 2.
TEST(AdaptiveAveragePool, KeepsANanInTheWindowsThatHoldIt) {
  Tensor x = Tensor::full({1, 3, 7}, 1);
  x.span<float>()[4] = std::numeric_limits<float>::quiet_NaN();
  const Tensor y = adaptive_average_pool2d(Variable(x), {2, 3}).value();
  ASSERT_EQ(y.shape(), Shape({1, 2, 3}));
  const auto found = y.span<float>();
  for (const size_t i : {1, 2}) EXPECT_TRUE(std::isnan(found[i])) << i;
  for (const size_t i : {0, 3, 4, 5}) EXPECT_EQ(found[i], 1) << i;
}

}  // namespace
}  // namespace tern
