#include <gtest/gtest.h>

#include <cmath>

#include "tern/autograd/functional.h"
#include "tern/core/random.h"
#include "tests/support/cuda.h"
#include "tests/support/values.h"

namespace tern {
namespace {

/// The gradients of a batch normalisation with a relu by x, gamma, beta and, if it has one, the residual. If `clears`,
/// its output becomes 0 before backward.
std::vector<Values> gradients_on(Device device, DType dtype, bool with_residual, bool clears = false) {
  constexpr int64_t kChannels = 16;
  const Shape shape{3, kChannels, 5, 5};
  uint32_t draws = 0;
  const auto random = [&](const Shape& of, DType type) {
    const RandomStream stream({.seed = 2, .purpose = Purpose::test, .tensor = draws++});
    Tensor values = Tensor::empty(of);
    for (size_t i = 0; i < values.span<float>().size(); ++i) values.span<float>()[i] = stream.normal(i);
    return values.to(type).to(device);
  };
  const auto image = [&] { return Variable::leaf(random(shape, dtype).to(MemoryFormat::channels_last)); };
  const TensorOptions wide{.device = device};
  const Variable x = image(), gamma = Variable::leaf(random({kChannels}, DType::f32)),
                 beta = Variable::leaf(random({kChannels}, DType::f32)),
                 residual = with_residual ? image() : Variable();
  const BatchNormState state{gamma, beta, Tensor::zeros({kChannels}, wide), Tensor::full({kChannels}, 1, wide)};
  Variable y = batch_norm(x, state, {.relu = true}, true, residual);
  if (clears) {
    Tensor output = y.value();
    output.fill(0);
  }
  y.backward(random(shape, dtype).to(MemoryFormat::channels_last));
  std::vector<Values> gradients;
  for (const Variable& leaf : {x, gamma, beta, residual})
    if (leaf.value().defined()) gradients.push_back(leaf.gradient().to_vector<double>());
  return gradients;
}

void expect_close(const std::vector<Values>& found, const std::vector<Values>& expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t g = 0; g < found.size(); ++g) {
    ASSERT_EQ(found[g].size(), expected[g].size());
    for (size_t i = 0; i < found[g].size(); ++i)
      EXPECT_NEAR(found[g][i], expected[g][i], tolerance) << "gradient " << g << ", element " << i;
  }
}

// A GPU keeps bits of the output, and so does not read it.
TEST(CudaBatchNorm, HasTheGradientsOfTheCpuAndNeedsNoOutput) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  const Device device{DeviceType::cuda, 0};
  for (const bool with_residual : {false, true})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(join({dtype, with_residual ? ", residual" : ""}));
      const auto found = gradients_on(device, dtype, with_residual);
      expect_close(found, gradients_on(Device{}, dtype, with_residual), dtype == DType::f32 ? 1e-4 : 0.05);
      EXPECT_EQ(gradients_on(device, dtype, with_residual, true), found);
    }
}

// 257 is no bf16 number.
TEST(BatchNorm, SumsTheGradientsOfParametersInTheirDtype) {
  constexpr int64_t kBatch = 257;
  Tensor images = Tensor::empty({kBatch, 1});
  for (int64_t i = 0; i < kBatch; ++i) images.data<float>()[i] = static_cast<float>(i % 8);
  const Variable x = Variable::leaf(images.to(DType::bf16)), gamma = Variable::leaf(Tensor::full({1}, 1)),
                 beta = Variable::leaf(Tensor::zeros({1}));
  const BatchNormState state{gamma, beta, Tensor::full({1}, 0.5), Tensor::full({1}, 1)};
  batch_norm(x, state, {}, false).backward(Tensor::full({kBatch, 1}, 1, {DType::bf16}));
  expect_values(beta.gradient(), {257});
  // 32 times the sum of 0 to 7, and a 0, each less 0.5
  expect_values(gamma.gradient(), {(32 * 28 - 257 * 0.5) / std::sqrt(1 + BatchNormOptions().epsilon)}, 1e-3);
}

TEST(ConvTranspose2d, SumsTheGradientOfTheBiasInItsDtype) {
  const Variable x = Variable::leaf(Tensor::zeros({1, 1, 257, 1}, {DType::bf16})), w = Tensor::full({1, 1, 1, 1}, 1),
                 bias = Variable::leaf(Tensor::zeros({1}));
  const Variable y = conv_transpose2d(x, w, bias);
  y.backward(Tensor::full(y.shape(), 1, {.dtype = DType::bf16, .format = y.value().format()}));
  expect_values(bias.gradient(), {257});
}

}  // namespace
}  // namespace tern
