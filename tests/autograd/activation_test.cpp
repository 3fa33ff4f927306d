#include "tern/autograd/functional.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/cuda.h"
#include "tests/support/values.h"

namespace tern {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Makes leaves and parameters in the dtypes under test, on a device.
struct Leaves {
  DType dtype;
  Device device;
  Variable operator()(const Shape& shape, const Values& values) const {
    return Variable::leaf(f64(shape, values).to(dtype).to(device));
  }
  Variable parameter(const Shape& shape, const Values& values) const {
    return Variable::leaf(f64(shape, values).to(parameter_dtype(dtype)).to(device));
  }
};

void backward(const Variable& y, const Values& dy) {
  y.backward(f64(y.shape(), dy).to(y.value().dtype()).to(y.value().device()));
}

// An odd function. The rounding of 1 + y near -1 would cost it a bit that 1 - y near 1 has.
TEST(Tanh, HasTheSameDigitsOnBothSides) {
  std::vector<float> x;
  for (int i = 0; i < 400; ++i) x.push_back(0.025f * static_cast<float>(i));
  const Tensor positive = Tensor::from<float>({400}, x);
  const auto plus = tanh(positive).value().to_vector<float>();
  const auto minus = tanh(-Variable(positive)).value().to_vector<float>();
  for (size_t i = 0; i < plus.size(); ++i) EXPECT_EQ(minus[i], -plus[i]) << x[i];
}

// As in PyTorch: the forward keeps NaN, and its gradient is dy. The gradient is 0 only if the output is 0.
void expect_that_nan_passes(std::initializer_list<DType> dtypes, Device device) {
  for (const DType dtype : dtypes) {
    SCOPED_TRACE(to_string(dtype));
    const Leaves leaf{dtype, device};
    const Variable x = leaf({4}, {kNaN, -1, 0, 2});
    backward(relu(x), {1, 2, 3, 4});
    expect_values(x.gradient(), {1, 0, 0, 4});

    const Variable a = leaf({3}, {kNaN, -1, 2}), b = leaf({3}, {1, 0, 0});
    backward(add_relu(a, b), {1, 2, 4});
    expect_values(a.gradient(), {1, 0, 4});
    expect_values(b.gradient(), {1, 0, 4});

    const Variable rows = leaf({3, 1}, {kNaN, -1, 2}), w = leaf.parameter({1, 1}, {1}),
                   shift = leaf.parameter({1}, {0});
    backward(linear(rows, w, shift, {.relu = true}), {1, 2, 4});
    expect_values(rows.gradient(), {1, 0, 4});
    expect_values(shift.gradient(), {5});

    const Variable image = leaf({1, 1, 1, 3}, {kNaN, -1, 2}), kernel = leaf.parameter({1, 1, 1, 1}, {1}),
                   bias = leaf.parameter({1}, {0});
    backward(conv2d(image, kernel, bias, {}, {.relu = true}), {1, 2, 4});
    expect_values(image.gradient(), {1, 0, 4});
    expect_values(bias.gradient(), {5});

    for (const bool training : {false, true}) {
      const Variable in = leaf({3, 1}, {1, -1, 2}), residual = leaf({3, 1}, {kNaN, -5, 5}),
                     gamma = leaf.parameter({1}, {1}), beta = leaf.parameter({1}, {0});
      const TensorOptions wide{.dtype = parameter_dtype(dtype), .device = device};
      const BatchNormState state{gamma, beta, Tensor::zeros({1}, wide), Tensor::full({1}, 1, wide)};
      backward(batch_norm(in, state, {.relu = true}, training, residual), {1, 2, 4});
      expect_values(residual.gradient(), {1, 0, 4});
      expect_values(beta.gradient(), {5});
    }
  }
}

TEST(Relu, PassesTheGradientOfNaNInEveryForm) { expect_that_nan_passes({DType::f64, DType::f32, DType::bf16}, {}); }
TEST(CudaRelu, PassesTheGradientOfNaNInEveryForm) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  expect_that_nan_passes({DType::f32, DType::bf16}, {DeviceType::cuda, 0});
}

}  // namespace
}  // namespace tern
