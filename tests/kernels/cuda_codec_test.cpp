#include <gtest/gtest.h>

#include "tern/kernels/codec.h"
#include "tests/support/cuda.h"

namespace tern::kernels {
namespace {

std::vector<double> statistics_of(const Tensor& g) {
  const MeasuredGradient measured = {g, Tensor::empty({1, 3}, {.dtype = DType::f64, .device = g.device()})};
  gradient_statistics({&measured, 1}, 0);
  return measured.statistics.to_vector<double>();
}

/// The bucket has so many blocks that in the last step each thread folds a subtree of several.
TEST(CudaStatistics, OfALongBucketAreAddedInTheOrderOfTheCpus) {
  if (const auto reason = test::why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
  const Tensor g = Tensor::empty({300 * 65536 + 12345});
  uint32_t word = 1;
  for (float& x : g.span<float>()) {
    word = word * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<int32_t>(word)) * 0x1p-40f;
  }
  EXPECT_EQ(statistics_of(g.to(Device{DeviceType::cuda, 0})), statistics_of(g));
}

}  // namespace
}  // namespace tern::kernels
