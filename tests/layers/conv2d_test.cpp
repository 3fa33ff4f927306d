#include "tern/layers/conv2d.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tern/core/error.h"
#include "tern/core/random.h"
#include "tests/support/cuda.h"
#include "tests/support/values.h"

namespace tern {
namespace {

constexpr Device kGpu{DeviceType::cuda, 0};

/// Images of three channels, and of eight of which five are 0.
struct SpareImages {
  SpareImages() {
    const RandomStream random({.seed = 7, .purpose = Purpose::test});
    const auto from = own.span<float>(), to = with_spare.span<float>();
    for (size_t i = 0; i < from.size(); ++i) to[i / 3 * 8 + i % 3] = from[i] = random.normal(i);
  }
  const Tensor own = Tensor::zeros({2, 3, 5, 6}, {.format = MemoryFormat::channels_last}),
               with_spare = Tensor::zeros({2, 8, 5, 6}, {.format = MemoryFormat::channels_last});
};

TEST(CudaConv2d, SpareChannelsChangeNothing) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  const SpareImages images;
  for (const auto& [dtype, tolerance] : {std::pair{DType::f32, 1e-4}, {DType::bf16, 0.1}}) {
    Conv2d layer({.in = 3, .out = 4, .kernel = 3, .padding = 1, .spare_channels = true});
    layer.initialize(1, DType::f32, kGpu);
    std::vector<Values> outputs, gradients;
    for (const Tensor& x : {images.own, images.with_spare}) {
      const Variable y = layer(Variable(x.to(dtype).to(kGpu)));
      layer.zero_gradients();
      y.backward(y.value().clone());
      EXPECT_EQ(layer.weight.gradient().shape(), (Shape{4, 3, 3, 3}));
      outputs.push_back(y.value().to_vector<double>());
      gradients.push_back(layer.weight.gradient().to_vector<double>());
    }
    EXPECT_GT(std::ranges::max(gradients[0]), 10 * tolerance);
    for (size_t i = 0; i < outputs[0].size(); ++i)
      EXPECT_NEAR(outputs[1][i], outputs[0][i], tolerance) << to_string(dtype);
    for (size_t i = 0; i < gradients[0].size(); ++i)
      EXPECT_NEAR(gradients[1][i], gradients[0][i], tolerance) << to_string(dtype);
  }
}

TEST(CudaConv2d, RefusesSpareChannelsThatItDoesNotTake) {
  const SpareImages images;
  Conv2d plain({.in = 3, .out = 4, .kernel = 3}), taking({.in = 3, .out = 4, .kernel = 3, .spare_channels = true});
  taking.initialize(1);
  EXPECT_THROW(taking(Variable(images.with_spare)), Error) << "on the CPU";
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  plain.initialize(1, DType::f32, kGpu);
  EXPECT_THROW(plain(Variable(images.with_spare.to(kGpu))), Error);
}

}  // namespace
}  // namespace tern
