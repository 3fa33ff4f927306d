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

TEST(Matmul, OverNothingIsZero) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    const TensorOptions options{.dtype = dtype};
    const auto check = [&](const Shape& a, const Shape& b, const MatmulOptions& transposed) {
      Tensor y = Tensor::full(matmul_output_shape(a, b, transposed), 7, options);
      matmul(Tensor::empty(a, options), Tensor::empty(b, options), transposed, y);
      expect_values(y, Values(static_cast<size_t>(y.numel()), 0));
    };
    check({2, 0}, {0, 4}, {});
    check({0, 2}, {4, 0}, {.transpose_a = true, .transpose_b = true});
    check({3, 2, 0}, {3, 0, 4}, {});
    check({5, 5, 0}, {0, 5}, {});
    check({0, 2, 0}, {0, 4}, {});
  }
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

TEST(Linear, OverNothingIsZero) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    const TensorOptions options{.dtype = dtype}, wide{.dtype = parameter_dtype(dtype)};
    const auto nothing = [&](const Shape& shape) { return Tensor::empty(shape, options); };
    Tensor y = Tensor::full({2, 3}, 7, options), dx = Tensor::full({2, 3}, 7, options);
    linear(nothing({2, 0}), Tensor::empty({3, 0}, wide), Tensor::full({3}, -1, wide), true, y);
    expect_values(y, Values(6, 0));
    linear(nothing({2, 0}), Tensor::empty({3, 0}, wide), Tensor::full({3}, 5, wide), true, y);
    expect_values(y, Values(6, 5));
    linear_backward_data(nothing({2, 0}), Tensor::empty({0, 3}, wide), dx);
    expect_values(dx, Values(6, 0));
    Tensor dw = Tensor::full({3, 2}, 7, wide), db = Tensor::full({3}, 7, wide);
    linear_backward_weights(nothing({0, 3}), nothing({0, 2}), dw, db);
    expect_values(dw, Values(6, 0));
    expect_values(db, Values(3, 0));
  }
}

}  // namespace
}  // namespace tern::kernels
