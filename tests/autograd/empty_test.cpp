#include <gtest/gtest.h>

#include <limits>

#include "tern/autograd/functional.h"
#include "tests/support/values.h"

namespace tern {
namespace {

/// Fills a tensor of this size with NaN and frees it. The next tensor of this size gets the same memory.
void soil(const Shape& shape, DType dtype) {
  Tensor::full(shape, std::numeric_limits<double>::quiet_NaN(), {.dtype = dtype});
}

void expect_zeros(const Tensor& found, const Shape& shape) {
  EXPECT_EQ(found.shape(), shape);
  expect_values(found, Values(static_cast<size_t>(shape.numel()), 0));
}

constexpr DType kDTypes[] = {DType::f64, DType::f32, DType::bf16};

TEST(Empty, ProductsOverNothingAreZeroAndSoAreTheirGradients) {
  struct Row {
    Shape a, b, y;
  };
  for (const DType dtype : kDTypes)
    for (const auto& [a_shape, b_shape, y_shape] :
         {Row{{2, 0}, {0, 4}, {2, 4}}, Row{{5, 5, 0}, {0, 5}, {5, 5, 5}}, Row{{3, 2, 0}, {3, 0, 4}, {3, 2, 4}},
          Row{{0, 3}, {3, 4}, {0, 4}}, Row{{2, 0, 3}, {3, 4}, {2, 0, 4}}, Row{{4, 3}, {3, 0}, {4, 0}}}) {
      SCOPED_TRACE(to_string(dtype) + " " + to_string(a_shape) + " " + to_string(b_shape));
      const auto a = Variable::leaf(Tensor::full(a_shape, 1, {.dtype = dtype})),
                 b = Variable::leaf(Tensor::full(b_shape, 1, {.dtype = dtype}));
      for (const Shape& shape : {a_shape, b_shape, y_shape}) soil(shape, dtype);
      const Variable y = matmul(a, b);
      expect_zeros(y.value(), y_shape);
      for (const Shape& shape : {a_shape, b_shape}) soil(shape, dtype);
      sum(y).backward();
      expect_zeros(a.gradient(), a_shape);
      expect_zeros(b.gradient(), b_shape);
    }
}

// For a batch of no images, a model computes outputs without rows, and a gradient of 0 for every parameter.
TEST(Empty, ABatchOfNothingHasNoOutputsAndZeroGradients) {
  for (const DType dtype : kDTypes)
    for (const auto format : {MemoryFormat::row_major, MemoryFormat::channels_last}) {
      SCOPED_TRACE(to_string(dtype) + " " + to_string(format));
      const TensorOptions wide{.dtype = parameter_dtype(dtype)};
      const auto parameter = [&](const Shape& shape) { return Variable::leaf(Tensor::full(shape, 0.5, wide)); };
      const auto x = Variable::leaf(Tensor::empty({0, 16, 9, 9}, {.dtype = dtype, .format = format}));
      const std::vector<Variable> parameters = {
          parameter({32, 16, 3, 3}), parameter({32}),     parameter({32}), parameter({32}),
          parameter({32, 8, 3, 3}),  parameter({10, 32}), parameter({10})};
      const BatchNormState state{parameters[2], parameters[3], Tensor::zeros({32}, wide), Tensor::full({32}, 1, wide)};
      Variable y = conv2d(x, parameters[0], parameters[1], {.padding = 1}, {.relu = true});
      EXPECT_EQ(y.shape(), (Shape{0, 32, 9, 9}));
      y = batch_norm(y, state, {.relu = true}, false);
      y = max_pool2d(y, {.window = 3});
      EXPECT_EQ(y.shape(), (Shape{0, 32, 4, 4}));
      y = relu(conv2d(y, parameters[4], {}, {.stride = 2, .groups = 4}));
      y = flatten(global_average_pool2d(y));
      y = linear(y, parameters[5], parameters[6], {.relu = true});
      EXPECT_EQ(y.shape(), (Shape{0, 10}));
      for (const Variable& each : parameters) soil(each.shape(), wide.dtype);
      const Variable total = sum(y);
      EXPECT_EQ(total.value().item(), 0);
      total.backward();
      EXPECT_EQ(x.gradient().shape(), x.shape());
      for (const Variable& each : parameters) expect_zeros(each.gradient(), each.shape());
    }
}

TEST(Empty, BagsOfNothingAreZeroAndSoIsTheirGradient) {
  struct Row {
    int64_t rows, columns, features;
  };
  for (const DType dtype : kDTypes)
    for (const auto& [rows, columns, features] :
         {Row{3, 5, 4}, Row{0, 5, 4}, Row{3, 0, 4}, Row{3, 5, 0}, Row{0, 0, 0}}) {
      const Shape w_shape{columns, features}, y_shape{rows, features};
      SCOPED_TRACE(to_string(dtype) + " " + to_string(w_shape) + " " + to_string(y_shape));
      const auto weight = Variable::leaf(Tensor::full(w_shape, 1, {.dtype = dtype}));
      soil(y_shape, dtype);
      const Variable y = embedding_bag(Tensor::empty({0}, {.dtype = DType::i64}),
                                       Tensor::zeros({rows + 1}, {.dtype = DType::i64}), {}, weight);
      expect_zeros(y.value(), y_shape);
      soil(w_shape, dtype);
      sum(y).backward();
      expect_zeros(weight.gradient(), w_shape);
    }
}

TEST(Empty, MeansOfElementsAreEmptyWithoutRows) {
  const auto x = Variable::leaf(Tensor::empty({0, 3}));
  const Variable y = mean(x, {1});
  EXPECT_EQ(y.shape(), Shape{0});
  y.backward(Tensor::empty({0}));
  EXPECT_EQ(x.gradient().shape(), (Shape{0, 3}));
}

}  // namespace
}  // namespace tern
