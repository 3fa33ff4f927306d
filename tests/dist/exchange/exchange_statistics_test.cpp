#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tern/kernels/elementwise.h"
#include "tests/dist/exchange/exchange_support.h"

namespace tern::test {
namespace {

/// The mean that an exchange computes of the gradients `gradient(rank)`.
template <class Gradient>
Tensor mean_over(int ranks, const std::string& exchange, const std::string& spec, const Gradient& gradient) {
  Tensor mean;
  const auto errors = with_communicators(make_in_process(ranks), [&](Communicator& c) {
    const auto codec = make_codec(spec);
    const auto way = make_exchange(exchange, *codec, c);
    const Tensor found = way->start({{tag(static_cast<uint32_t>(c.rank())), gradient(c.rank())}})()[0];
    if (c.rank() == 0) mean = found;
  });
  EXPECT_EQ(errors, std::vector<std::string>(static_cast<size_t>(ranks)));
  return mean;
}

// If the draws did not depend on the rank, 1.0 of one rank's variance would remain.
TEST(ExchangeStatistics, RanksDrawIndependently) {
  const Tensor g = gaussian({65536});
  for (const char* exchange : {"allgather", "server", "ternary-ring"}) {
    const auto variance = [&](int ranks) {
      return squared_distance(mean_over(ranks, exchange, "ternary:clip=0", [&](int) { return g; }), g);
    };
    EXPECT_NEAR(variance(8) / variance(1), 0.125, 0.01) << exchange;
  }
}

// The gradients are ±S everywhere, so the first codes are exact. Only the re-quantisation of the mean m adds an error.
// It has the expectation m. Each of N shards is scaled by its largest magnitude M, so the second moment is M‖m‖₁
// (TernGrad, eq. 25).
TEST(ExchangeStatistics, RequantisationIsUnbiasedAndHasItsSecondMoment) {
  constexpr int kRanks = 4;
  constexpr int64_t kCount = 65536;
  const auto signs = [](int rank) {
    Tensor g = Tensor::empty({kCount});
    const RandomStream random({.seed = 11, .owner = static_cast<uint32_t>(rank)});
    for (int64_t i = 0; i < kCount; ++i) g.data<float>()[i] = random.below(static_cast<uint64_t>(i), 2) == 0 ? -1 : 1;
    return g;
  };
  Tensor mean = Tensor::zeros({kCount});
  for (int rank = 0; rank < kRanks; ++rank) {
    const Tensor g = signs(rank);
    for (int64_t i = 0; i < kCount; ++i) mean.data<float>()[i] += g.data<float>()[i] / kRanks;
  }
  const Tensor found = mean_over(kRanks, "reduce-scatter", "ternary", signs);
  double along = 0, absolute = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    along += double{found.data<float>()[i]} * mean.data<float>()[i];
    absolute += std::abs(mean.data<float>()[i]);
  }
  EXPECT_NEAR(along / squared_norm(mean), 1, 0.02);
  EXPECT_NEAR(squared_norm(found) / absolute, 1, 0.02);  // the largest magnitude of every shard is 1
}

/// How far the sum of the means of all steps is from the sum of the true means, as an RMS over the elements, after each
/// of `marks` steps. If `forget`, the owner of a shard drops its residual after each step.
std::vector<double> drift(int ranks, bool forget, const std::vector<uint32_t>& marks) {
  const Shape shape = {24, 50};
  std::vector<double> drifts;
  const auto errors = with_communicators(make_in_process(ranks), [&](Communicator& c) {
    const auto codec = make_codec("onebit");
    const auto way = make_exchange("reduce-scatter", *codec, c);
    Tensor difference = Tensor::zeros(shape);
    for (uint32_t step = 0; step < marks.back(); ++step) {
      const Tensor mean = way->start(gradients_of(c.rank(), {shape}, step))()[0];
      if (forget) way->load_state({});
      kernels::accumulate(mean, difference);
      for (int rank = 0; rank < ranks; ++rank) {
        Tensor gradient = gradients_of(rank, {shape}, step)[0].gradient;
        kernels::scale(gradient, -1.0 / ranks, gradient);
        kernels::accumulate(gradient, difference);
      }
      if (c.rank() == 0 && std::ranges::find(marks, step + 1) != marks.end())
        drifts.push_back(std::sqrt(squared_norm(difference) / static_cast<double>(shape.numel())));
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(static_cast<size_t>(ranks)));
  return drifts;
}

// 1-bit SGD's second stage. With a residual of its own, what the owner of a shard leaves out of a mean comes later, so
// that the error of all steps together stays that of a few steps. Without it, it grows as the square root of the steps.
TEST(ExchangeStatistics, AShardsOwnResidualBoundsTheErrorOfManyStepsSlow) {
  const std::vector<double> kept = drift(4, false, {25, 400}), forgotten = drift(4, true, {25, 400});
  EXPECT_LT(kept[1], 1.5 * kept[0]);
  EXPECT_GT(forgotten[1], 3 * forgotten[0]);
  EXPECT_GT(forgotten[1], 4 * kept[1]);
}

}  // namespace
}  // namespace tern::test
