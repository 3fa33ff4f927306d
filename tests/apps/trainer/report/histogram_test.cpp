#include "tern/trainer/report/histogram.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

namespace tern {
namespace {

using trainer::Histogram;
using trainer::make_histogram;

TEST(Histogram, CountsEveryElementOnce) {
  std::vector<float> values(200);
  std::iota(values.begin(), values.end(), 0.0f);  // 0 to 199: four in each of 50 intervals
  const Histogram found = make_histogram(Tensor::from<float>({2, 100}, values));
  EXPECT_EQ(found.low, 0);
  EXPECT_EQ(found.high, 199);
  EXPECT_EQ(found.sum, 199 * 100);
  EXPECT_EQ(found.squares, 199.0 * 200 * 399 / 6);
  EXPECT_EQ(found.finite, 200);
  EXPECT_EQ(found.counts, std::vector<int64_t>(50, 4));
}

TEST(Histogram, CountsWhatIsNotFiniteApart) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  const Histogram found = make_histogram(Tensor::from<float>({4}, std::vector<float>{kInfinity, 2, kNan, -kInfinity}));
  EXPECT_EQ(found.low, 2);
  EXPECT_EQ(found.high, 2);
  EXPECT_EQ(found.not_finite, 3);
  EXPECT_EQ(found.counts, std::vector<int64_t>{1}) << "equal elements need one interval";
  const Histogram none = make_histogram(Tensor::from<float>({1}, std::vector<float>{kNan}));
  EXPECT_EQ(none.finite, 0);
  EXPECT_EQ(none.not_finite, 1);
  EXPECT_TRUE(none.counts.empty());
}

TEST(Histogram, ReadsAnyDtypeAndFormat) {
  const Tensor values = Tensor::from<float>({1, 2, 1, 2}, std::vector<float>{1, 2, 3, 4});
  const auto same = [&](const Tensor& other) {
    const Histogram a = make_histogram(values), b = make_histogram(other);
    EXPECT_EQ(a.counts, b.counts);
    EXPECT_EQ(a.squares, b.squares);
  };
  same(values.to(MemoryFormat::channels_last));
  same(values.to(DType::bf16));
  same(values.to(DType::f64));
}

}  // namespace
}  // namespace tern
