#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "tern/autograd/functional.h"
#include "tern/layers/normalization.h"
#include "tern/networks/resnet.h"
#include "tests/dist/methods/subnet_job.h"

namespace tern::test {
namespace {

/// A residual network for CIFAR with basic blocks (He et al., 2016).
struct Network {
  struct Block {
    int64_t in, width;
  };
  int64_t depth, parameters;
  std::vector<Block> blocks;

  /// The parameters of all blocks' conv1, bn1 and conv2 that belong to `channels(width)` of the inner channels (IST,
  /// section 3.5): rows, entries and columns.
  template <class Channels>
  int64_t inner_parameters(Channels channels) const {
    int64_t sum = 0;
    for (const auto& [in, width] : blocks) sum += channels(width) * (9 * in + 2 + 9 * width);
    return sum;
  }
  int64_t inner_parameters() const { return inner_parameters(std::identity()); }
  /// The same for the part of `rank`.
  int64_t inner_parameters(int64_t rank, int64_t ranks) const {
    return inner_parameters([=](int64_t width) { return (rank + 1) * width / ranks - rank * width / ranks; });
  }
};

const Network kResNet20 = {
    20, 269'722, {{16, 16}, {16, 16}, {16, 16}, {16, 32}, {32, 32}, {32, 32}, {32, 64}, {64, 64}, {64, 64}}};
const Network kResNet18 = {
    18, 11'173'962, {{64, 64}, {64, 64}, {64, 128}, {128, 128}, {128, 256}, {256, 256}, {256, 512}, {512, 512}}};

void expect_subnets(const Network& network, int ranks) {
  on_all(ranks, [&](Communicator& c) {
    networks::ResNet model({.depth = network.depth});
    model.initialize(1);
    EXPECT_EQ(model.parameter_count(), network.parameters);
    Sgd optimizer(model.parameters(), {});
    IndependentSubnets subnets(model, optimizer, c, model.subnet_plan(SubnetScope::filters), {});
    subnets.begin_step(0);
    EXPECT_EQ(model.parameter_count(),
              network.parameters - network.inner_parameters() + network.inner_parameters(c.rank(), c.size()));
    return Values();
  });
}

TEST(ResidualSubnets, HaveTheirPartOfEveryBlockAndAllOfTheRest) {
  expect_subnets(kResNet20, 3);
  expect_subnets(kResNet18, 4);
}

Tensor drawn_images(int64_t count, int owner) {
  const Tensor x = Tensor::empty({count, 3, 8, 8});
  normal(1)(x, RandomStream({.seed = 2, .owner = static_cast<uint32_t>(owner)}));
  return x.to(MemoryFormat::channels_last);
}

void learn(Layer& model, IndependentSubnets& subnets, int rank, int64_t step) {
  subnets.begin_step(step);
  model.zero_gradients();
  cross_entropy(model(drawn_images(4, rank)), Tensor::from<int64_t>({4}, std::vector<int64_t>{0, 1, 2, 3})).backward();
  subnets.step();
}

TEST(ResidualSubnets, MoveTheBytesOfTheirParts) {
  constexpr int64_t kRanks = 3;
  std::vector<uint64_t> received(kRanks);
  on_all(kRanks, [&](Communicator& c) {
    networks::ResNet model({.depth = 20});
    model.initialize(1);
    Sgd optimizer(model.parameters(), {.momentum = 0.9});
    IndependentSubnets subnets(
        model, optimizer, c, model.subnet_plan(SubnetScope::filters),
        {.local_steps = 2, .exchange = SubnetExchange::coordinator, .momentum = SubnetMomentum::travel});
    for (int64_t step = 0; step < 2; ++step) learn(model, subnets, c.rank(), step);
    received[static_cast<size_t>(c.rank())] = c.traffic().received_payload;
    return Values();
  });
  // Rank 0 keeps the whole model. The other ranks get their parameters, the momentum of each parameter, and the two
  // statistics of bn1.
  int64_t parts = 0;
  for (int64_t rank = 1; rank < kRanks; ++rank) parts += 2 * kResNet20.inner_parameters(rank, kRanks);
  // The ranks average the rest: the other parameters, and the statistics of the stem and of every bn2. The 19 counters
  // have 8 bytes each. They are so few that each rank sends them to all others in one message.
  int64_t rest = kResNet20.parameters - kResNet20.inner_parameters() + 2 * 16;
  for (const auto& [in, width] : kResNet20.blocks) {
    parts += 2 * (width - width / kRanks);
    rest += 2 * width;
  }
  const int64_t expected = 2 * 4 * parts + 2 * (kRanks - 1) * 4 * rest + kRanks * (kRanks - 1) * 8 * 19;
  EXPECT_EQ(static_cast<int64_t>(std::accumulate(received.begin(), received.end(), uint64_t{0})), expected);
}

double relative_distance(const std::vector<double>& x, const std::vector<double>& y) {
  double squares = 0, norm = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    squares += (x[i] - y[i]) * (x[i] - y[i]);
    norm += y[i] * y[i];
  }
  return std::sqrt(squares / norm);
}

// During training, the second normalisation of a block sees sums over one worker's channels. In the whole network it
// sees sums over all channels.
TEST(ResidualSubnets, NeedStatisticsOfTheWholeNetwork) {
  on_all(2, [](Communicator& c) {
    networks::ResNet model({.depth = 20});
    model.initialize(1);
    Sgd optimizer(model.parameters(), {.lr = 0.05});
    IndependentSubnets subnets(model, optimizer, c, model.subnet_plan(SubnetScope::filters), {.local_steps = 5});
    for (int64_t step = 0; step < 20; ++step) learn(model, subnets, c.rank(), step);
    subnets.consolidate();
    model.set_training(false);
    const NoGradient no_gradient;
    const Tensor images = drawn_images(64, 7);
    const auto logits = [&] { return model(images).value().to_vector<double>(); };
    const std::vector<double> by_batch = [&] {
      const BatchStatistics statistics(model);
      return logits();
    }();
    EXPECT_GT(relative_distance(logits(), by_batch), 0.3);
    bool done = false;
    calibrate_batch_statistics(model, [&] {
      if (std::exchange(done, true)) return false;
      model(images);
      return true;
    });
    EXPECT_LT(relative_distance(logits(), by_batch), 0.05);
    return Values();
  });
}

}  // namespace
}  // namespace tern::test
