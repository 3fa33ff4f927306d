#include "tern/kernels/convolution.h"

#include <gtest/gtest.h>

#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern::kernels {
namespace {

const Tensor kX = f64({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
const Tensor kW = f64({1, 1, 2, 2}, {1, 0, 0, -2});

TEST(Conv2d, AddsProductsUnderTheKernel) {
  Tensor y = empty_f64({1, 1, 2, 2});
  conv2d(kX, kW, f64({1}, {10}), {}, false, y);
  expect_values(y, {1, 0, -2, -3});  // 10 + x[i][j] - 2·x[i+1][j+1]
  conv2d(kX, kW, f64({1}, {11}), {}, true, y);
  expect_values(y, {2, 1, 0, 0});
  conv2d(kX, kW, {}, {.stride = 2, .padding = 1}, false, y);
  expect_values(y, {-2, -6, -14, -13});
  Tensor one = empty_f64({1, 1, 1, 1});
  conv2d(kX, kW, {}, {.dilation = 2}, false, one);
  expect_values(one, {1 - 2 * 9});
}

TEST(Conv2d, KeepsGroupsApart) {
  Tensor y = empty_f64({1, 4, 1, 1});
  conv2d(f64({1, 2, 1, 1}, {3, 5}), f64({4, 1, 1, 1}, {1, 2, 3, 4}), {}, {.groups = 2}, false, y);
  expect_values(y, {3, 6, 15, 20});
}

TEST(Conv2d, SendsGradientsBack) {
  const Tensor dy = f64({1, 1, 2, 2}, {1, 2, 3, 4});
  Tensor dx = empty_f64({1, 1, 3, 3}), dw = empty_f64({1, 1, 2, 2}), db = empty_f64({1});
  conv2d_backward_data(dy, kW, {}, dx);
  expect_values(dx, {1, 2, 0, 3, 4 - 2, -4, 0, -6, -8});
  conv2d_backward_weights(dy, kX, {}, dw, db);
  expect_values(dw, {37, 47, 67, 77});
  expect_values(db, {10});
}

TEST(Conv2d, NamesBothShapes) {
  const auto message = [](const Shape& x, const Shape& w, const ConvGeometry& geometry) {
    return message_of<Error>([&] { conv2d_output_shape(x, w, geometry); });
  };
  EXPECT_EQ(message({2, 3, 8, 8}, {4, 5, 3, 3}, {}),
            "conv2d: input [2, 3, 8, 8] has 3 channels, weight [4, 5, 3, 3] in 1 group expects 5");
  EXPECT_EQ(message({2, 4, 8, 8}, {5, 2, 3, 3}, {.groups = 2}),
            "conv2d: weight [5, 2, 3, 3] in 2 groups, expected a number that divides 5");
  EXPECT_EQ(message({2, 3, 4, 4}, {4, 3, 5, 5}, {}),
            "conv2d: weight [4, 3, 5, 5] with dilation 1x1 does not fit into input [2, 3, 4, 4] with padding 0x0");
  EXPECT_EQ(message({3, 4, 4}, {4, 3, 5, 5}, {}),
            "conv2d: input [3, 4, 4] and weight [4, 3, 5, 5], expected 4 dimensions each");
  const std::string empty = ", expected at least one channel on both sides";
  EXPECT_EQ(message({2, 0, 8, 8}, {4, 0, 3, 3}, {}), "conv2d: input [2, 0, 8, 8] and weight [4, 0, 3, 3]" + empty);
  EXPECT_EQ(message({2, 3, 8, 8}, {0, 3, 3, 3}, {}), "conv2d: input [2, 3, 8, 8] and weight [0, 3, 3, 3]" + empty);
  EXPECT_EQ(
      message({2, 3, 8, 8}, {4, 3, 3, 3}, {.stride = 0}),
      "conv2d: stride 0x0, padding 0x0, dilation 1x1, expected strides and dilations from 1 and padding from 0, up "
      "to 2^31");
}

}  // namespace
}  // namespace tern::kernels
