#include <gtest/gtest.h>

#include <vector>

#include "tern/core/random.h"
#include "tern/kernels/cpu/gemm.h"

namespace tern::cpu {
namespace {

// C [2, 2] has rows of 3 elements. The elements between its rows do not change.
TEST(Sgemm, OverNothingIsBetaTimesWhatThereWas) {
  for (const float beta : {0.0f, 1.0f, 0.5f}) {
    std::vector<float> c{1, 2, 3, 4, 5, 6};
    sgemm({.m = 2, .n = 2, .k = 0, .ldc = 3, .beta = beta}, nullptr, nullptr, c.data());
    EXPECT_EQ(c, (std::vector<float>{beta * 1, beta * 2, 3, beta * 4, beta * 5, 6}));
  }
}

// The extents fill neither a tile nor a pass over the inner dimension.
TEST(BatchProduct, MultipliesLikeALoop) {
  for (const int64_t batch : {9, 64}) {
    const BatchProduct shape{.batch = batch, .in = 2051, .out = 49};
    const RandomStream random({.seed = 1, .purpose = Purpose::test});
    std::vector<float> x(static_cast<size_t>(batch * shape.in)), w(static_cast<size_t>(shape.out * shape.in));
    for (size_t i = 0; i < x.size(); ++i) x[i] = random.uniform(i) - 0.5f;
    for (size_t i = 0; i < w.size(); ++i) w[i] = random.uniform(i + x.size()) - 0.5f;
    std::vector<float> y(static_cast<size_t>(batch * shape.out));
    batch_forward(shape, x.data(), w.data(), y.data());
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t o = 0; o < shape.out; ++o) {
        double expected = 0;
        for (int64_t i = 0; i < shape.in; ++i) expected += double{x[n * shape.in + i]} * w[o * shape.in + i];
        EXPECT_NEAR(y[n * shape.out + o], expected, 1e-4) << "row " << n << ", column " << o;
      }
  }
}

TEST(BatchProduct, IsForManyWeightsAndFewRows) {
  EXPECT_TRUE(suits_batch_product({.batch = 64, .in = 4096, .out = 4096}));
  EXPECT_FALSE(suits_batch_product({.batch = 64, .in = 1024, .out = 1000}));
  EXPECT_FALSE(suits_batch_product({.batch = 2048, .in = 4096, .out = 4096}));
}

}  // namespace
}  // namespace tern::cpu
