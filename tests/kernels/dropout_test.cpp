#include "tern/kernels/dropout.h"

#include <gtest/gtest.h>

#include "tests/support/values.h"

namespace tern::kernels {
namespace {

TEST(Dropout, IsAPureFunctionOfSeedStepLayerAndSample) {
  const DropoutDraw draw{.seed = 9, .step = 4, .layer = 2, .probability = 0.25};
  const Tensor samples = Tensor::from({2}, std::vector<int64_t>{70, 3});
  Values expected;
  for (uint32_t sample : {70u, 3u}) {
    const RandomStream stream({.seed = 9, .purpose = Purpose::dropout, .owner = sample, .step = 4, .tensor = 2});
    for (uint64_t e = 0; e < 30; ++e) expected.push_back(stream.uniform(e) < 0.25 ? 0 : 4);
  }
  for (DType dtype : {DType::f32, DType::f64})
    for (MemoryFormat format : {MemoryFormat::row_major, MemoryFormat::channels_last}) {
      const Tensor x = Tensor::full({2, 5, 2, 3}, 3, {.dtype = dtype, .format = format});
      Tensor y = Tensor::empty_like(x);
      dropout(x, samples, draw, y);
      expect_values(y, expected, 1e-6);
    }
}

TEST(Dropout, KeepsTheMean) {
  const Tensor x = Tensor::full({1, 100000}, 1);
  Tensor y = Tensor::empty_like(x);
  dropout(x, Tensor::zeros({1}, {.dtype = DType::i64}), {.seed = 1, .probability = 0.3}, y);
  double total = 0;
  for (float value : y.span<float>()) total += value;
  EXPECT_NEAR(total / 100000, 1, 0.011);  // 5 standard errors
}

}  // namespace
}  // namespace tern::kernels
