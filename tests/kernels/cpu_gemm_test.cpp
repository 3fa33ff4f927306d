#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tern/core/random.h"
#include "tern/kernels/cpu/gemm.h"
#include "tern/kernels/cpu/vector.h"

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

// The extents fill neither a tile nor a block of C. Rows of the operands have gaps.
TEST(OwnSgemm, MultipliesLikeALoopForEveryVectorSet) {
  const RandomStream random({.seed = 2, .purpose = Purpose::test});
  for (const VectorSet set : kVectorSets) {
    if (set > vector_set()) break;
    const NarrowerVectors narrower(set);
    for (const Gemm& extents :
         {Gemm{.m = 1, .n = 1, .k = 1}, Gemm{.m = 53, .n = 301, .k = 37}, Gemm{.m = 5, .n = 6, .k = 2051}})
      for (const bool transpose_a : {false, true})
        for (const bool transpose_b : {false, true})
          for (const float beta : {0.0f, 1.0f, 0.5f}) {
            Gemm gemm = extents;
            gemm.transpose_a = transpose_a, gemm.transpose_b = transpose_b, gemm.beta = beta;
            gemm.lda = (transpose_a ? gemm.m : gemm.k) + 3;
            gemm.ldb = (transpose_b ? gemm.k : gemm.n) + 2;
            gemm.ldc = gemm.n + 1;
            std::vector<float> a(static_cast<size_t>((transpose_a ? gemm.k : gemm.m) * gemm.lda));
            std::vector<float> b(static_cast<size_t>((transpose_b ? gemm.n : gemm.k) * gemm.ldb));
            std::vector<float> c(static_cast<size_t>(gemm.m * gemm.ldc));
            for (size_t i = 0; i < a.size(); ++i) a[i] = random.uniform(i) - 0.5f;
            for (size_t i = 0; i < b.size(); ++i) b[i] = random.uniform(i + a.size()) - 0.5f;
            for (size_t i = 0; i < c.size(); ++i) c[i] = random.uniform(i + a.size() + b.size()) - 0.5f;
            const std::vector<float> before = c;
            own_sgemm(gemm, a.data(), b.data(), c.data());
            double worst = 0;
            for (int64_t i = 0; i < gemm.m; ++i) {
              for (int64_t j = 0; j < gemm.n; ++j) {
                double expected = double{beta} * before[i * gemm.ldc + j];
                for (int64_t p = 0; p < gemm.k; ++p)
                  expected += double{a[transpose_a ? p * gemm.lda + i : i * gemm.lda + p]} *
                              b[transpose_b ? j * gemm.ldb + p : p * gemm.ldb + j];
                worst = std::max(worst, std::abs(expected - c[i * gemm.ldc + j]));
              }
              EXPECT_EQ(c[i * gemm.ldc + gemm.n], before[i * gemm.ldc + gemm.n]) << "the gap after row " << i;
            }
            EXPECT_LT(worst, 1e-4) << gemm.m << " x " << gemm.n << " x " << gemm.k << ", transposed: " << transpose_a
                                   << transpose_b << ", beta " << beta;
          }
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
