#include "tern/layers/embedding.h"

#include <gtest/gtest.h>

#include "tern/core/parallel.h"
#include "tern/core/random.h"

namespace tern {
namespace {

Tensor integers(const std::vector<int64_t>& values) { return Tensor::from<int64_t>({std::ssize(values)}, values); }

TEST(EmbeddingBag, IsALinearLayerForSparseRows) {
  EmbeddingBag bag({.columns = 3, .features = 2});
  bag.initialize(1);
  bag.weight.value().copy_from(Tensor::from<float>({3, 2}, std::vector<float>{1, 2, 10, 20, 100, 200}));
  bag.bias->value().copy_from(Tensor::from<float>({2}, std::vector<float>{0.5, 0.25}));
  const Variable ones = bag(integers({2, 0, 1}), integers({0, 2, 2, 3}));
  EXPECT_EQ(ones.value().to_vector<float>(), (std::vector<float>{101.5, 202.25, 0.5, 0.25, 10.5, 20.25}));
  const Tensor values = Tensor::from<float>({3}, std::vector<float>{2, -1, 3});
  const Variable y = bag(integers({2, 0, 1}), integers({0, 2, 2, 3}), values);
  EXPECT_EQ(y.value().to_vector<float>(), (std::vector<float>{199.5, 398.25, 0.5, 0.25, 30.5, 60.25}));
  sum(y).backward();
  EXPECT_EQ(bag.weight.gradient().to_vector<float>(), (std::vector<float>{-1, -1, 3, 3, 2, 2}));
  EXPECT_EQ(bag.bias->gradient().to_vector<float>(), (std::vector<float>{3, 3}));
}

TEST(EmbeddingBag, HasPyTorchsNames) {
  EmbeddingBag bag({.columns = 3, .features = 2, .bias = false});
  ASSERT_EQ(bag.parameters().size(), 1u);
  EXPECT_EQ(bag.parameters()[0].name, "weight");
  EXPECT_EQ(EmbeddingBag({.columns = 3, .features = 2}).parameters()[1].name, "bias");
}

TEST(EmbeddingBag, GivesTheSameBitsWithAnyNumberOfThreads) {
  constexpr int64_t kColumns = 50, kFeatures = 100, kElements = 2000;
  const RandomStream random({.purpose = Purpose::test});
  std::vector<int64_t> columns;
  Tensor values = Tensor::empty({kElements});
  for (int64_t e = 0; e < kElements; ++e) {
    columns.push_back(random.below(static_cast<uint64_t>(e), kColumns));
    values.data<float>()[e] = random.normal(static_cast<uint64_t>(5000 + e));
  }
  const auto run = [&](int threads) {
    set_thread_count(threads);
    EmbeddingBag bag({.columns = kColumns, .features = kFeatures});
    bag.initialize(1);
    const Variable y = bag(integers(columns), integers({0, 3, 900, kElements}), values);
    sum(y * y).backward();
    return std::pair(y.value().to_vector<float>(), bag.weight.gradient().to_vector<float>());
  };
  const int before = thread_count();
  const auto alone = run(1);
  EXPECT_EQ(run(3), alone);
  set_thread_count(before);
}

}  // namespace
}  // namespace tern
