#include "tern/kernels/matmul.h"

#include <gtest/gtest.h>

#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern::kernels {
namespace {

TEST(Matmul, TransposesEitherOperand) {
  const Tensor a = f64({2, 2}, {1, 2, 3, 4}), b = f64({2, 2}, {5, 6, 7, 8});
  Tensor y = empty_f64({2, 2});
  matmul(a, b, {}, y);
  expect_values(y, {19, 22, 43, 50});
  matmul(a, b, {.transpose_a = true}, y);
  expect_values(y, {26, 30, 38, 44});
  matmul(a, b, {.transpose_b = true}, y);
  expect_values(y, {17, 23, 39, 53});
}

TEST(Matmul, RunsOverLeadingDimensions) {
  const Tensor a = f64({2, 1, 2}, {1, 2, 3, 4});
  Tensor y = empty_f64({2, 1, 1});
  matmul(a, f64({2, 2, 1}, {1, 1, 10, 10}), {}, y);
  expect_values(y, {3, 70});
  matmul(a, f64({2, 1}, {1, -1}), {}, y);
  expect_values(y, {-1, -1});
}

TEST(Matmul, NamesBothShapes) {
  EXPECT_EQ(message_of<Error>([] { matmul_output_shape({4, 2, 3}, {4, 2, 3}, {.transpose_a = true}); }), "");
  EXPECT_EQ(message_of<Error>([] {
              matmul_output_shape({2, 3}, {2, 3}, {});
            }),
            "matmul: [2, 3] times [2, 3], expected [..., m, k] times [..., k, n] or [k, n]");
  EXPECT_EQ(message_of<Error>([] {
              matmul_output_shape({5, 2, 3}, {4, 2, 3}, {.transpose_b = true});
            }),
            "matmul: [5, 2, 3] times [4, 2, 3]ᵀ, expected [..., m, k] times [..., k, n] or [k, n]");
  EXPECT_EQ(message_of<Error>([] {
              linear_output_shape({2, 3}, {4, 5});
            }),
            "linear: input of shape [2, 3], weight of shape [4, 5], expected [N, in] and [out, in]");
}

TEST(Linear, MultipliesByTheTransposedWeight) {
  const Tensor x = f64({1, 2}, {1, 2}), w = f64({2, 2}, {3, 4, 5, -6}), dy = f64({1, 2}, {1, 2});
  Tensor y = empty_f64({1, 2}), dx = empty_f64({1, 2}), dw = empty_f64({2, 2}), db = empty_f64({2});
  linear(x, w, f64({2}, {1, 1}), false, y);
  expect_values(y, {12, -6});
  linear(x, w, {}, true, y);
  expect_values(y, {11, 0});
  linear_backward_data(dy, w, dx);
  expect_values(dx, {13, -8});
  linear_backward_weights(dy, x, dw, db);
  expect_values(dw, {1, 2, 2, 4});
  expect_values(db, {1, 2});
}

}  // namespace
}  // namespace tern::kernels
