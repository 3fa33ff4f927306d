#include "tern/data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tern/core/error.h"

namespace tern {
namespace {

std::vector<int64_t> counting(int64_t size) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

TEST(Sampler, KeepsTheOrderOfTheDataSetUnlessShuffled) { EXPECT_EQ((Sampler{.size = 7}.order(3)), counting(7)); }

TEST(Sampler, ShufflesByPermutationsThatDifferByEpochAndSeed) {
  const Sampler sampler{.size = 1000, .shuffle = true, .seed = 5};
  auto first = sampler.order(0);
  EXPECT_EQ(first, sampler.order(0));
  EXPECT_NE(first, sampler.order(1));
  EXPECT_NE(first, (Sampler{.size = 1000, .shuffle = true, .seed = 6}.order(0)));
  EXPECT_NE(first, counting(1000));
  std::ranges::sort(first);
  EXPECT_EQ(first, counting(1000));
}

TEST(Sampler, ShufflesAlikeOnEveryMachine) {
  EXPECT_EQ((Sampler{.size = 10, .shuffle = true, .seed = 1}.order(0)),
            (std::vector<int64_t>{8, 9, 6, 4, 2, 5, 1, 3, 0, 7}));
}

TEST(Sampler, ShufflesEveryPlaceUniformly) {
  constexpr int kSize = 5, kEpochs = 20000;
  int counts[kSize][kSize] = {};
  const Sampler sampler{.size = kSize, .shuffle = true, .seed = 2};
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const auto order = sampler.order(epoch);
    for (size_t i = 0; i < kSize; ++i) ++counts[i][order[i]];
  }
  for (const auto& row : counts)
    for (const int count : row) EXPECT_NEAR(count, kEpochs / kSize, 5 * 57);  // σ = √(20000·0.2·0.8) = 57
}

TEST(Sampler, RanksCoverTheSetWithoutOverlapAndMeetTheSameGlobalBatches) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    const auto common = Sampler{.size = 103, .shuffle = true}.order(1);
    std::vector<int64_t> met(common.size(), -1);
    for (int rank = 0; rank < ranks; ++rank) {
      const Sampler own{.size = 103, .shuffle = true, .rank = rank, .ranks = ranks};
      const auto order = own.order(1);
      ASSERT_EQ(std::ssize(order), own.share());
      for (size_t i = 0; i < order.size(); ++i)
        met[i * static_cast<size_t>(ranks) + static_cast<size_t>(rank)] = order[i];
    }
    EXPECT_EQ(met, common) << ranks << " ranks";
  }
}

TEST(Sampler, RefusesARankOutsideTheGroup) {
  EXPECT_THROW((Sampler{.size = 4, .rank = 2, .ranks = 2}.order(0)), Error);
}

}  // namespace
}  // namespace tern
