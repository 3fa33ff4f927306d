#include "tern/kernels/pooling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern::kernels {
namespace {

TEST(MaxPool2d, TakesTheFirstOfEquals) {
  const Tensor x = f64({1, 1, 3, 3}, {1, 5, 2, 5, 0, 3, 4, 4, 9});
  Tensor y = empty_f64({1, 1, 2, 2}), where = Tensor::empty(y.shape(), {.dtype = DType::u8});
  Tensor dx = empty_f64(x.shape());
  const PoolGeometry geometry{.window = 2, .stride = 1};
  max_pool2d(x, geometry, y, where);
  expect_values(y, {5, 5, 5, 9});
  expect_values(where, {1, 0, 0, 3});
  max_pool2d_backward(f64(y.shape(), {1, 2, 3, 4}), where, geometry, dx);
  expect_values(dx, {0, 3, 0, 3, 0, 0, 0, 0, 4});
}

// As torch.nn.functional.max_pool2d. The test runs in f64 and in f32, because their loops differ.
TEST(MaxPool2d, TakesTheLastNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Tensor x = f64({1, 1, 2, 4}, {nan, 1, 2, 3, nan, 5, 9, nan}).to(dtype);
    Tensor y = Tensor::empty({1, 1, 1, 2}, {.dtype = dtype}), where = Tensor::empty(y.shape(), {.dtype = DType::u8});
    Tensor dx = Tensor::empty_like(x);
    max_pool2d(x, {}, y, where);
    EXPECT_TRUE(std::isnan(y.to_vector<double>()[0]) && std::isnan(y.to_vector<double>()[1]));
    expect_values(where, {2, 3});
    max_pool2d_backward(f64(y.shape(), {1, 2}).to(dtype), where, {}, dx);
    expect_values(dx, {0, 0, 0, 0, 1, 0, 0, 2});
  }
}

TEST(AveragePool2d, CountsWhatLiesInside) {
  const Tensor x = f64({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  Tensor y = empty_f64({1, 1, 2, 2}), dx = empty_f64(x.shape());
  average_pool2d(x, {.ceil_mode = true}, y);
  expect_values(y, {3, 4.5, 7.5, 9});
  average_pool2d(x, {.padding = 1}, y);
  expect_values(y, {1, 2.5, 5.5, 7});
  average_pool2d(x, {.padding = 1, .count_include_pad = true}, y);
  expect_values(y, {0.25, 1.25, 2.75, 7});
  average_pool2d_backward(f64(y.shape(), {4, 2, 2, 1}), {.ceil_mode = true}, dx);
  expect_values(dx, {1, 1, 1, 1, 1, 1, 1, 1, 1});
}

TEST(Pool2d, TakesAnInputSmallerThanTheWindowInCeilMode) {
  const Tensor x = f64({1, 1, 2, 2}, {1, 2, 6, 3}), dy = f64({1, 1, 1, 1}, {8});
  Tensor y = empty_f64(dy.shape()), where = Tensor::empty(dy.shape(), {.dtype = DType::u8}), dx = empty_f64(x.shape());
  const PoolGeometry geometry{.window = 3, .ceil_mode = true};
  max_pool2d(x, geometry, y, where);
  expect_values(y, {6});
  expect_values(where, {3});
  max_pool2d_backward(dy, where, geometry, dx);
  expect_values(dx, {0, 0, 8, 0});
  for (const bool counts : {false, true}) {  // what ceil_mode adds never counts
    const PoolGeometry averages{.window = 3, .ceil_mode = true, .count_include_pad = counts};
    average_pool2d(x, averages, y);
    expect_values(y, {3});
    average_pool2d_backward(dy, averages, dx);
    expect_values(dx, {2, 2, 2, 2});
  }
}

TEST(AveragePool2d, IsPreciseOverLargeWindows) {
  if (!average_pool2d.has(Target::cpu)) GTEST_SKIP() << "the reference sums in f32";
  for (const MemoryFormat format : {MemoryFormat::row_major, MemoryFormat::channels_last}) {
    const Tensor x = Tensor::full({1, 2, 512, 512}, 0.1, {.format = format});
    Tensor y = Tensor::empty({1, 2, 1, 1}, {.format = format});
    average_pool2d(x, {.window = 512, .stride = 512}, y);
    expect_values(y, {0.1, 0.1}, 1e-7);
  }
}

TEST(Pool2d, FindsTheOutputShapeAsPyTorchDoes) {
  EXPECT_EQ(pool2d_output_shape({2, 3, 7, 7}, {}), (Shape{2, 3, 3, 3}));
  EXPECT_EQ(pool2d_output_shape({2, 3, 7, 7}, {.ceil_mode = true}), (Shape{2, 3, 4, 4}));
  EXPECT_EQ(pool2d_output_shape({2, 3, 6, 6}, {.padding = 1, .ceil_mode = true}), (Shape{2, 3, 4, 4}));
  EXPECT_EQ(pool2d_output_shape({2, 3, 6, 6}, {.window = 2, .stride = 3, .padding = 1, .ceil_mode = true}),
            (Shape{2, 3, 3, 3}));
  EXPECT_EQ(pool2d_output_shape({2, 3, 4, 4}, {.window = 2, .stride = 3, .padding = 1, .ceil_mode = true}),
            (Shape{2, 3, 2, 2}))
      << "a window that would begin in the padding is dropped";
  EXPECT_EQ(pool2d_output_shape({2, 3, 2, 2}, {.window = 3, .ceil_mode = true}), (Shape{2, 3, 1, 1}))
      << "a window that is larger than the input by less than the stride";
  EXPECT_EQ(pool2d_output_shape({2, 3, 3, 9}, {.window = 4, .ceil_mode = true}), (Shape{2, 3, 1, 4}));
  EXPECT_EQ(pool2d_output_shape({2, 3, 1, 1}, {.window = 4, .stride = 5, .padding = 1, .ceil_mode = true}),
            (Shape{2, 3, 1, 1}));
  EXPECT_EQ(message_of<Error>([] {
              pool2d_output_shape({2, 3, 1, 1}, {.window = 3, .ceil_mode = true});
            }),
            "pool2d: window 3x3 does not fit into input [2, 3, 1, 1] with padding 0x0");
  EXPECT_EQ(message_of<Error>([] {
              pool2d_output_shape({2, 3, 4, 4}, {.window = 5});
            }),
            "pool2d: window 5x5 does not fit into input [2, 3, 4, 4] with padding 0x0");
  EXPECT_EQ(message_of<Error>([] {
              pool2d_output_shape({2, 3, 4, 4}, {.window = 3, .padding = 2});
            }),
            "pool2d: padding 2x2 for window 3x3, expected 0 to half the window");
  EXPECT_EQ(message_of<Error>([] {
              pool2d_output_shape({1, 3, 0, 4}, {.padding = 1}, "max_pool2d");
            }),
            "max_pool2d: input [1, 3, 0, 4], expected at least one row and one column");
  constexpr int64_t kLong = int64_t{1} << 30;
  EXPECT_EQ(
      message_of<Error>([] {
        pool2d_output_shape({2, 3, 4, 4}, {.window = {kLong, 2}, .padding = {kLong / 2, 0}}, "max_pool2d");
      }),
      "max_pool2d: window 1073741824x2, stride 2x2, expected 1 or more, and a window of fewer than 2^31 elements");
}

}  // namespace
}  // namespace tern::kernels
