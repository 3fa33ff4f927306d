#include <gtest/gtest.h>

#include <mutex>

#include "tests/dist/methods/subnet_job.h"

namespace tern::test {
namespace {

/// The network of IST's Figure 2 without biases: only its matrices.
struct Figure2 final : Layer {
  static constexpr int64_t kWidths[] = {1000, 4000, 4000, 4000, 200};
  Figure2() {
    for (size_t i = 0; i < 4; ++i)
      layers.append<Linear>(
          {.in = kWidths[i], .out = kWidths[i + 1], .bias = false, .weight_initializer = constant(0)});
  }
  Variable forward(const Variable& x) override { return layers(x); }
  static SubnetPlan plan() {
    return {{{"1", {{"layers.0.weight", 0}, {"layers.1.weight", 1}}},
             {"2", {{"layers.1.weight", 0}, {"layers.2.weight", 1}}},
             {"3", {{"layers.2.weight", 0}, {"layers.3.weight", 1}}}}};
  }
  Sequential& layers = add<Sequential>("layers");
};

struct Measured {
  std::mutex mutex;
  uint64_t received = 0, sent = 0;
  int64_t weights = 0;  // over all subnets
};

void measure(SubnetExchange exchange, int ranks, int64_t local_steps, Measured& measured) {
  on_all(ranks, [&](Communicator& c) {
    Figure2 model;
    model.initialize(1);
    Sgd optimizer(model.parameters(), {});
    IndependentSubnets subnets(model, optimizer, c, Figure2::plan(),
                               {.local_steps = local_steps, .exchange = exchange});
    for (int64_t step = 0; step < local_steps; ++step) {
      subnets.begin_step(step);
      subnets.step();
    }
    const Traffic traffic = c.traffic();
    const std::lock_guard lock(measured.mutex);
    measured.received += traffic.received_payload;
    measured.sent += traffic.sent_payload;
    measured.weights += model.parameter_count();
    return Values();
  });
}

TEST(SubnetLedger, HoldsThePapersFiguresForFigure2Slow) {
  struct Expected {
    int64_t ranks;
    double floats, flops;  // per step, the exact values of ist_costs_test.cpp
  };
  for (const auto& [n, floats, flops] :
       {Expected{2, 2.08e6, 4.260e10}, Expected{4, 1.28e6, 2.621e10}, Expected{8, 8.8e5, 1.802e10}}) {
    constexpr int64_t kLocalSteps = 10, kBatch = 512;
    Measured measured;
    measure(SubnetExchange::coordinator, static_cast<int>(n), kLocalSteps, measured);
    // Subnets travel down and up. Rank 0's own subnet does not travel.
    const double expected = 2 * 4 * floats * kLocalSteps * static_cast<double>(n - 1) / static_cast<double>(n);
    EXPECT_EQ(static_cast<double>(measured.received), expected) << n;
    EXPECT_EQ(measured.sent, measured.received);
    EXPECT_NEAR(4.0 * kBatch * static_cast<double>(measured.weights), flops, 0.0005e10) << n;
  }
}

TEST(SubnetLedger, IsNoFullerBetweenPeers) {
  Measured coordinated, peers;
  measure(SubnetExchange::coordinator, 4, 1, coordinated);
  measure(SubnetExchange::peer, 4, 1, peers);
  // A worker's share of each slice stays with the worker: 1/4 in expectation, ±1.6 % of a rank's neurons.
  EXPECT_NEAR(static_cast<double>(peers.received) / static_cast<double>(coordinated.received), 1, 0.05);
}

TEST(SubnetLedger, CountsLookingAtTheModelAsOverhead) {
  on_all(2, [](Communicator& c) {
    SubnetTrainer trainer(c, {.local_steps = 4});
    trainer.train(0, 6);
    const Traffic before = c.traffic();
    trainer.subnets->consolidate();
    const Traffic spent = c.traffic() - before;
    EXPECT_EQ(spent.sent_payload, 0u);
    EXPECT_GT(spent.sent_overhead, 0u);
    return Values();
  });
}

TEST(SubnetLedger, ShrinksEachRanksModel) {
  constexpr int64_t kIn = 96, kHidden = 64, kOut = 10, kRanks = 4, kPart = kHidden / kRanks;
  on_all(kRanks, [](Communicator& c) {
    networks::Mlp model({.widths = {kIn, kHidden, kHidden, kOut}, .norm = networks::MlpNorm::hidden});
    model.initialize(1);
    Sgd optimizer(model.parameters(), {.momentum = 0.9});
    IndependentSubnets subnets(model, optimizer, c, model.subnet_plan(SubnetScope::fc),
                               {.exchange = SubnetExchange::peer});
    subnets.begin_step(0);
    // A quarter of the first and last matrix, and a sixteenth of the matrix between two hidden layers.
    const int64_t expected = kPart * kIn + kPart * kPart + kOut * kPart + kOut + 2 * 2 * kPart;
    EXPECT_EQ(model.parameter_count(), expected);
    int64_t state = 0;
    for (const auto& [name, tensor] : optimizer.state()) state += tensor.numel();
    EXPECT_EQ(state, expected);
    return Values();
  });
}

}  // namespace
}  // namespace tern::test
