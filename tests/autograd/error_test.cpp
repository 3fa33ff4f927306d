#include <gtest/gtest.h>

#include <limits>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern {
namespace {

Variable zeros(const Shape& shape, DType dtype = DType::f32) { return Tensor::zeros(shape, {dtype}); }

/// A wrong call and the error message that it must give.
struct WrongCall {
  std::function<void()> call;
  const char* sentence;
};

TEST(Errors, NameTheOperationAndBothShapes) {
  const std::vector<WrongCall> table{
      {[] { exp({}); }, "exp: the first argument is undefined, expected a tensor"},
      {[] { zeros({2}) + Variable(); }, "add: an operand is undefined, expected a tensor"},
      {[] { 2 / Variable(); }, "number: `like` is undefined, expected a tensor"},
      {[] { select({}, zeros({2}), zeros({2})); }, "select: mask of no tensor, expected u8"},
      {[] { select(Tensor::zeros({2}, {DType::u8}), zeros({2}), {}); },
       "select: the third argument is undefined, expected a tensor"},
      {[] {
         mean(integers({1, 2}));
       },
       "mean: elements are i64, expected f32, f64 or bf16"},
      {[] {
         max(zeros({2, 3}), {2});
       },
       "max: dimension 2 of [2, 3] does not exist"},
      {[] {
         split(zeros({2, 3}), {3}, -3);
       },
       "split: dimension -3 of [2, 3] does not exist"},
      {[] {
         squeeze(zeros({2, 3}), 5);
       },
       "squeeze: dimension 5 of [2, 3] does not exist"},
      {[] {
         transpose(zeros({2, 3}), 0, 2);
       },
       "transpose: dimension 2 of [2, 3] does not exist"},
      {[] { embedding(integers({0}), zeros({3})); },
       "embedding: weight f32 of shape [3], expected f32, f64 or bf16 [rows, features]"},
      {[] {
         max_pool2d(zeros({1, 1, 2, 2}), {.window = 3});
       },
       "max_pool2d: window 3x3 does not fit into input [1, 1, 2, 2] with padding 0x0"},
      {[] {
         zeros({2, 3}) + zeros({4});
       },
       "add: shapes [2, 3] and [4] do not broadcast"},
      {[] { zeros({2}) * zeros({2}, DType::f64); },
       "multiply: elements are f32 in [2] and f64 in [2], expected one dtype"},
      {[] {
         add_relu(zeros({2, 3}), zeros({3}));
       },
       "add_relu: shapes [2, 3] and [3], expected equal ones"},
      {[] {
         matmul(zeros({2, 3}), zeros({4, 5}));
       },
       "matmul: [2, 3] times [4, 5], expected [..., m, k] times [..., k, n] or [k, n]"},
      {[] {
         linear(zeros({2, 3}), zeros({5, 4}), {});
       },
       "linear: input of shape [2, 3], weight of shape [5, 4], expected [N, in] and [out, in]"},
      {[] {
         linear(zeros({2, 3}), zeros({5, 3}), zeros({4}));
       },
       "linear: bias of shape [4], weight of shape [5, 3], expected [out] and [out, in]"},
      {[] {
         conv2d(Variable(Tensor::zeros({1, 3, 8, 8}, {.dtype = DType::u8})), zeros({4, 3, 3, 3}), zeros({4}));
       },
       "conv2d: input is u8, expected a floating-point type"},
      {[] {
         conv2d(zeros({1, 3, 8, 8}), zeros({4, 3, 3, 3}), zeros({3}));
       },
       "conv2d: bias of shape [3], weight of shape [4, 3, 3, 3], expected [O] and [O, C/groups, kh, kw]"},
      {[] {
         batch_norm(zeros({2, 3}), {}, {.epsilon = 0}, true);
       },
       "batch_norm: epsilon 0, expected more than 0"},
      {[] {
         sum(zeros({2, 3}), {0, 0});
       },
       "sum: dimension 0 of [2, 3] is given twice"},
      {[] {
         mean(zeros({2, 3}), {1, -1});
       },
       "mean: dimension 1 of [2, 3] is given twice"},
      {[] {
         mean(zeros({0, 3}));
       },
       "mean: input of shape [0, 3], each mean is of no elements, expected one or more"},
      {[] {
         mean(zeros({2, 0, 3}), {1});
       },
       "mean: input of shape [2, 0, 3], each mean is of no elements, expected one or more"},
      {[] {
         cross_entropy(zeros({0, 10}), Tensor::zeros({0}, {DType::i64}));
       },
       "cross_entropy: logits of shape [0, 10], expected one row or more to average over"},
      {[] {
         mse(zeros({0, 3}), Tensor::zeros({0, 3}));
       },
       "mse: input of shape [0, 3], expected one element or more to average over"},
      {[] {
         binary_cross_entropy_with_logits(zeros({0, 3}), Tensor::zeros({0, 3}));
       },
       "binary_cross_entropy_with_logits: logits of shape [0, 3], expected one element or more to average over"},
      {[] {
         binary_cross_entropy_with_logits(zeros({2, 3}), Tensor::zeros({2}));
       },
       "binary_cross_entropy_with_logits: logits f32 [2, 3], targets f32 [2], expected one shape, and targets of f32"},
      {[] { binary_cross_entropy_with_logits(zeros({2}), Tensor::zeros({2}, {DType::i64})); },
       "binary_cross_entropy_with_logits: logits f32 [2], targets i64 [2], expected one shape, and targets of f32"},
      {[] {
         embedding_bag(integers({0}), integers({0, 1}), {}, zeros({3}));
       },
       "embedding_bag: weight f32 of shape [3], expected f32, f64 or bf16 [columns, features]"},
      {[] {
         embedding_bag(Tensor::zeros({1}), integers({0, 1}), {}, zeros({3, 2}));
       },
       "embedding_bag: indices f32 of shape [1], expected i64 [elements]"},
      {[] {
         embedding_bag(integers({0}), Tensor(), {}, zeros({3, 2}));
       },
       "embedding_bag: offsets undefined of shape [], expected i64 [N + 1]"},
      {[] {
         embedding_bag(integers({}), integers({}), {}, zeros({3, 2}));
       },
       "embedding_bag: offsets of shape [0], expected [N + 1]"},
      {[] {
         embedding_bag(integers({0}), integers({0, 1}), Tensor::zeros({2}), zeros({3, 2}));
       },
       "embedding_bag: values f32 of shape [2], expected f32 of shape [1], one for each index"},
      {[] {
         embedding_bag(integers({0}), integers({0, 1}), Tensor::zeros({1}, {DType::f64}), zeros({3, 2}));
       },
       "embedding_bag: values f64 of shape [1], expected f32 of shape [1], one for each index"},
      {[] {
         local_response_norm(zeros({1, 4, 2, 2}), {.size = 0});
       },
       "local_response_norm: size 0, expected 1 or more"},
      {[] {
         concat({zeros({2, 3}), zeros({3, 3})}, 1);
       },
       "concat: f32 [3, 3] beside f32 [2, 3] along dimension 1"},
      {[] {
         slice(zeros({2, 3}), 1, 2, 5);
       },
       "slice: indices 2 to 5 of dimension 1 of shape [2, 3], expected a range within 0 to 3"},
      {[] {
         pad(zeros({2, 3}), {{1, 1}});
       },
       "pad: 1 paddings for shape [2, 3], expected one per dimension"},
      {[] {
         reshape(zeros({2, 3}), {4, -1});
       },
       "reshape: [2, 3] has 6 elements, which do not divide by 4"},
      {[] {
         cross_entropy(zeros({2, 3}), Tensor::zeros({3}, {DType::i64}));
       },
       "cross_entropy: logits of shape [2, 3], labels i64 of shape [3], expected [N, C] and i64 [N]"},
      {[] {
         mse(zeros({2, 3}), Tensor::zeros({3, 2}));
       },
       "mse: input f32 [2, 3], target f32 [3, 2], expected equal ones"},
      {[] {
         dropout(zeros({2, 3}), Tensor::zeros({3}, {DType::i64}), {});
       },
       "dropout: samples of shape [3] for input of shape [2, 3], expected one index per row"},
      {[] {
         const Tensor four = Tensor::zeros({4});
         batch_norm(zeros({2, 3}), {zeros({4}), zeros({4}), four, four}, {}, true);
       },
       "batch_norm: input f32 of shape [2, 3], weight f32 of shape [4], expected f32 of shape [3]"},
      {[] {
         const Tensor three = Tensor::zeros({3});
         batch_norm(zeros({2, 3}), {zeros({3}), zeros({4}), three, three}, {}, true);
       },
       "batch_norm: input f32 of shape [2, 3], bias f32 of shape [4], expected f32 of shape [3]"},
      {[] {
         batch_norm(zeros({2, 3}), {zeros({3}), zeros({3}), Tensor::zeros({2}), Tensor::zeros({3})}, {}, false);
       },
       "batch_norm: input f32 of shape [2, 3], running mean f32 of shape [2], expected f32 of shape [3]"},
      {[] {
         batch_norm(zeros({2, 3}), {zeros({3}), zeros({3}), Tensor::zeros({3}), Tensor::zeros({2})}, {}, false);
       },
       "batch_norm: input f32 of shape [2, 3], running variance f32 of shape [2], expected f32 of shape [3]"},
      {[] {
         const Tensor wide = Tensor::zeros({3}, {DType::f64});
         batch_norm(zeros({2, 3}), {zeros({3}), zeros({3}), wide, wide}, {}, true);
       },
       "batch_norm: input f32 of shape [2, 3], running mean f64 of shape [3], expected f32 of shape [3]"},
      {[] {
         const Tensor three = Tensor::zeros({3});
         batch_norm(zeros({2, 3}), {zeros({3}), zeros({3}), three, three}, {}, true, zeros({2, 3}, DType::f64));
       },
       "batch_norm: residual f64 of shape [2, 3], input f32 of shape [2, 3], expected equal ones"},
      {[] {
         const Tensor three = Tensor::zeros({3});
         batch_norm(zeros({1, 3}), {zeros({3}), zeros({3}), three, three}, {}, true);
       },
       "batch_norm: input of shape [1, 3], values per channel: 1, training expects 2 or more: a larger batch has "
       "them"},
  };
  for (const auto& [call, sentence] : table) EXPECT_EQ(message_of<Error>(call), sentence);
}

// Their sums or products would overflow.
TEST(Errors, NumbersFarTooLargeAreRefused) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  const Variable x = zeros({1, 2, 4, 4}), w = zeros({2, 2, 3, 3});
  const std::string limits = ", expected strides and dilations from 1 and padding from 0, up to 2^31";
  const std::string huge = std::to_string(kHuge) + "x" + std::to_string(kHuge);
  EXPECT_EQ(message_of<Error>([&] { conv2d(x, w, {}, {.padding = kHuge}); }),
            "conv2d: stride 1x1, padding " + huge + ", dilation 1x1" + limits);
  EXPECT_EQ(message_of<Error>([&] { conv2d_same(x, w, {}, kHuge); }),
            "conv2d_same: stride 1x1, padding 0x0, dilation " + huge + limits);
  EXPECT_EQ(message_of<Error>([&] {
              pad(zeros({2, 3}), {{kHuge, kHuge}, {0, 0}});
            }),
            "pad: " + std::to_string(kHuge) + " and " + std::to_string(kHuge) +
                " around dimension 0 of [2, 3], expected -2^48 to 2^48");
  EXPECT_NE(message_of<Error>([&] { adaptive_average_pool2d(x, kHuge); }), "");
  EXPECT_EQ(message_of<Error>([&] {
              matmul(zeros({int64_t{1} << 40, 0}), zeros({0, int64_t{1} << 40}));
            }),
            "shape: [1099511627776, 1099511627776] has more than 2^48 elements");
}

TEST(Errors, TransposedConvolutionChecksItsGeometry) {
  const Variable x = zeros({1, 4, 8, 8}), w = zeros({4, 4, 3, 3});
  const std::string limits = ", expected strides and dilations from 1 and padding from 0, up to 2^31";
  const auto message = [&](const ConvGeometry& geometry) {
    return message_of<Error>([&] { conv_transpose2d(x, w, {}, geometry); });
  };
  EXPECT_EQ(message({.groups = 3}),
            "conv_transpose2d: weight [4, 4, 3, 3] in 3 groups, expected a number that divides 4");
  EXPECT_EQ(message({.groups = 0}),
            "conv_transpose2d: weight [4, 4, 3, 3] in 0 groups, expected a number that divides 4");
  EXPECT_EQ(message({.stride = 0}), "conv_transpose2d: stride 0x0, padding 0x0, dilation 1x1" + limits);
  EXPECT_EQ(message({.padding = -1}), "conv_transpose2d: stride 1x1, padding -1x-1, dilation 1x1" + limits);
  EXPECT_EQ(message({.dilation = 0}), "conv_transpose2d: stride 1x1, padding 0x0, dilation 0x0" + limits);
  EXPECT_EQ(message_of<Error>([&] {
              conv_transpose2d(x, zeros({4, 4, 0, 3}), {});
            }),
            "conv_transpose2d: input [1, 4, 8, 8] and weight [4, 4, 0, 3], expected [N, C, H, W] and [C, O/groups, kh, "
            "kw]");
}

}  // namespace
}  // namespace tern
