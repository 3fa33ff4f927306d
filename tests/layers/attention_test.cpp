#include "tern/layers/attention.h"

#include <gtest/gtest.h>

#include "tern/core/error.h"
#include "tests/support/gradcheck.h"
#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern {
namespace {

using Variables = std::vector<Variable>;

Tensor random(const Shape& shape, uint32_t number) { return test::random_tensor(shape, number); }

TEST(Attention, HasTheGradientsOfQueriesKeysAndValues) {
  for (const bool causal : {false, true})
    for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>(4, 6), {6, 4}, {5, 5}})
      test::expect_gradients([&](const Variables& in) { return attention(in[0], in[1], in[2], {.causal = causal}); },
                             {random({2, queries, 3}, 0), random({2, keys, 3}, 1), random({2, keys, 2}, 2)});
}

TEST(Attention, IsTheSoftmaxOfTheScoresTimesTheValues) {
  const Variable q = random({2, 3, 5, 4}, 0), k = random({2, 3, 6, 4}, 1), v = random({2, 3, 6, 2}, 2);
  const Variable scores = matmul(q, k, {.transpose_b = true}) * 0.25;
  expect_values(attention(q, k, v, {.scale = 0.25}).value(), matmul(softmax(scores), v).value().to_vector<double>());
  expect_values(attention(q, k, v).value(), matmul(softmax(scores * 2), v).value().to_vector<double>());
}

// A causal attention gives step t what an attention over the steps 0 to t gives it.
TEST(Attention, SeesNoLaterStepIfCausal) {
  const Variable x = random({2, 5, 4}, 0), all = attention(x, x, x, {.causal = true});
  for (int64_t t = 0; t < 5; ++t) {
    const Variable seen = slice(x, 1, 0, t + 1);
    expect_values(slice(all, 1, t, t + 1).value(),
                  attention(slice(x, 1, t, t + 1), seen, seen).value().to_vector<double>());
  }
}

TEST(Attention, NamesWhatDoesNotFit) {
  const Variable x = random({2, 5, 4}, 0), other = random({3, 5, 4}, 0), narrow = random({2, 5, 3}, 0),
                 none = random({2, 0, 4}, 0), row = random({4}, 0);
  EXPECT_EQ(message_of<Error>([&] { attention(x, other, other); }), "attention: shapes [2] and [3] do not broadcast");
  EXPECT_EQ(
      message_of<Error>([&] { attention(x, narrow, x); }),
      "attention: queries f64 [2, 5, 4], keys f64 [2, 5, 3], values f64 [2, 5, 4], expected [..., L, D], [..., S, "
      "D] and [..., S, E] of one floating dtype");
  EXPECT_EQ(message_of<Error>([&] { attention(x, none, none); }),
            "attention: keys of shape [2, 0, 4], expected one key or more");
  EXPECT_EQ(message_of<Error>([&] { attention(row, row, row); }), "attention: shape [4], expected [..., L, D]");
  EXPECT_EQ(message_of<Error>([&] { MultiHeadAttention({.features = 6, .heads = 4}); }),
            "MultiHeadAttention: 6 features do not divide into 4 heads");
  MultiHeadAttention layer({.features = 6, .heads = 2});
  layer.initialize(1, DType::f64);
  EXPECT_EQ(message_of<Error>([&] { layer(x); }), "MultiHeadAttention: input of shape [2, 5, 4], expected [N, T, 6]");
}

}  // namespace
}  // namespace tern
