#include "tern/kernels/cpu/gemm.h"

#include <gtest/gtest.h>

#include <vector>

namespace tern::cpu {
namespace {

// C [2, 2] in rows of 3: what lies between its rows stays as it is.
TEST(Sgemm, OverNothingIsBetaTimesWhatThereWas) {
  for (const float beta : {0.0f, 1.0f, 0.5f}) {
    std::vector<float> c{1, 2, 3, 4, 5, 6};
    sgemm({.m = 2, .n = 2, .k = 0, .ldc = 3, .beta = beta}, nullptr, nullptr, c.data());
    EXPECT_EQ(c, (std::vector<float>{beta * 1, beta * 2, 3, beta * 4, beta * 5, 6}));
  }
}

}  // namespace
}  // namespace tern::cpu
