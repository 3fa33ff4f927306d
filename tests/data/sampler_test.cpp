#include "tern/data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>

#include "tern/core/error.h"
#include "tests/support/message_of.h"

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

/// 103 samples of 21 different lengths in steps of 8, in pools of 3 steps.
Sampler grouping(bool shuffle) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 103; ++i) lengths.push_back(i * i % 21);
  return {.size = 103,
          .shuffle = shuffle,
          .lengths = std::make_shared<const std::vector<int64_t>>(std::move(lengths)),
          .step_size = 8,
          .pool = 3};
}

TEST(GroupingSampler, SortsEachPoolByLength) {
  const Sampler sampler = grouping(false);
  const auto order = sampler.order(0);
  const auto length = [&](int64_t index) { return (*sampler.lengths)[static_cast<size_t>(index)]; };
  for (int64_t pool = 0; pool < 96; pool += 24) {  // 12 whole steps
    const auto first = order.begin() + pool, last = first + 24;
    for (auto at = first; at + 1 < last; ++at) {
      EXPECT_LE(length(*at), length(at[1]));
      EXPECT_TRUE(length(*at) < length(at[1]) || *at < at[1]) << "samples of one length keep their order";
    }
    EXPECT_EQ(*std::min_element(first, last), pool);
    EXPECT_EQ(*std::max_element(first, last), pool + 23);
  }
  for (size_t i = 96; i < 103; ++i) EXPECT_EQ(order[i], static_cast<int64_t>(i)) << "the rest stays at the end";
}

TEST(GroupingSampler, CoversEveryIndexOnceAndIsAPureFunction) {
  for (const bool shuffle : {false, true}) {
    const Sampler sampler = grouping(shuffle);
    auto order = sampler.order(2);
    EXPECT_EQ(order, grouping(shuffle).order(2));
    EXPECT_EQ(order == sampler.order(3), !shuffle);
    std::ranges::sort(order);
    EXPECT_EQ(order, counting(103));
  }
}

TEST(GroupingSampler, ShufflesWholeStepsOfTheShuffledOrder) {
  Sampler sampler = grouping(true);
  const auto common = Sampler{.size = 103, .shuffle = true}.order(4);
  const auto order = sampler.order(4);
  EXPECT_TRUE(std::equal(common.begin() + 96, common.end(), order.begin() + 96)) << "the rest stays at the end";

  // Sorts the pools of the common order here, and looks for their steps.
  auto sorted = common;
  for (auto pool = sorted.begin(); pool < sorted.begin() + 96; pool += 24)
    std::stable_sort(pool, pool + 24, [&](int64_t a, int64_t b) {
      return (*sampler.lengths)[static_cast<size_t>(a)] < (*sampler.lengths)[static_cast<size_t>(b)];
    });
  std::vector<int64_t> places;
  for (int64_t step = 0; step < 12; ++step)
    for (int64_t place = 0; place < 12; ++place)
      if (std::equal(order.begin() + 8 * step, order.begin() + 8 * step + 8, sorted.begin() + 8 * place))
        places.push_back(place);
  ASSERT_EQ(places.size(), 12u);
  EXPECT_NE(places, counting(12));
  std::ranges::sort(places);
  EXPECT_EQ(places, counting(12));
}

TEST(GroupingSampler, RanksTogetherMeetTheStepsOfOneRank) {
  const auto common = grouping(true).order(1);
  for (const int ranks : {2, 4, 8}) {
    std::vector<int64_t> met(common.size(), -1);
    for (int rank = 0; rank < ranks; ++rank) {
      Sampler own = grouping(true);
      own.rank = rank;
      own.ranks = ranks;
      const auto order = own.order(1);
      for (size_t i = 0; i < order.size(); ++i)
        met[i * static_cast<size_t>(ranks) + static_cast<size_t>(rank)] = order[i];
    }
    EXPECT_EQ(met, common) << ranks << " ranks";
  }
}

TEST(GroupingSampler, GroupsNothingInLessThanAStep) {
  Sampler sampler = grouping(true);
  sampler.step_size = 104;
  EXPECT_EQ(sampler.order(0), (Sampler{.size = 103, .shuffle = true}.order(0)));
}

TEST(GroupingSampler, TakesAnyLargePool) {
  Sampler sampler = grouping(false);
  sampler.pool = INT64_MAX;
  const auto order = sampler.order(0);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.begin() + 96, [&](int64_t a, int64_t b) {
    return (*sampler.lengths)[static_cast<size_t>(a)] < (*sampler.lengths)[static_cast<size_t>(b)];
  }));
}

TEST(GroupingSampler, RefusesWhatDoesNotFit) {
  const auto message = [](auto change) {
    Sampler sampler = grouping(true);
    change(sampler);
    return message_of<Error>([&] { sampler.order(0); });
  };
  EXPECT_EQ(message([](Sampler& sampler) { sampler.size = 104; }), "sampler: lengths of 103 samples, expected 104");
  EXPECT_EQ(message([](Sampler& sampler) { sampler.step_size = 0; }),
            "sampler: 0 samples in a step, expected a multiple of 1");
  EXPECT_EQ(message([](Sampler& sampler) { sampler.ranks = 3; }),
            "sampler: 8 samples in a step, expected a multiple of 3");
  EXPECT_EQ(message([](Sampler& sampler) { sampler.pool = 0; }), "sampler: pools of 0 steps, expected 1 or more");
}

}  // namespace
}  // namespace tern
