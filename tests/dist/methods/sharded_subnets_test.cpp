#include "tern/dist/methods/sharded_subnets.h"

#include <gtest/gtest.h>

#include "tern/core/error.h"
#include "tern/optim/adam.h"
#include "tests/dist/methods/subnet_job.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

using networks::Mlp;
using networks::MlpNorm;

constexpr int64_t kShardedLocalSteps = 4;

Mlp::Options one_hidden(MlpNorm norm, int64_t neurons = 11) { return {.widths = {6, neurons, 3}, .norm = norm}; }

/// A model that a rank holds a part of, and what trains it.
struct Sharded {
  Sharded(Communicator& c, MlpNorm norm, SubnetMomentum momentum, uint64_t seed = 5, int64_t neurons = 11)
      : rank(c.rank()),
        model(one_hidden(norm, neurons)),
        cuts(model.subnet_plan(SubnetScope::fc), model.whole_shapes()) {
    model.initialize(seed, DType::f32, {}, home_ranges(cuts, c.rank(), c.size()));
    local = std::make_unique<Sgd>(model.parameters(), Sgd::Options{.lr = 0.1, .momentum = 0.9});
    subnets = std::make_unique<ShardedSubnets>(
        model, *local, c, cuts, ShardedSubnets::Options{.local_steps = kShardedLocalSteps, .momentum = momentum});
  }
  void train(int64_t begin, int64_t end) {
    for (int64_t step = begin; step < end; ++step) SubnetTrainer::learn(model, *subnets, rank, step);
  }

  int rank;
  Mlp model;
  SubnetCuts cuts;
  std::unique_ptr<Sgd> local;
  std::unique_ptr<ShardedSubnets> subnets;
};

/// The same run by IndependentSubnets, whole after `steps` steps.
StateDict unsharded(Communicator& c, MlpNorm norm, SubnetMomentum momentum, int64_t steps, int64_t neurons = 11) {
  Mlp model(one_hidden(norm, neurons));
  model.initialize(5);
  Sgd local(model.parameters(), {.lr = 0.1, .momentum = 0.9});
  IndependentSubnets subnets(model, local, c, model.subnet_plan(SubnetScope::fc),
                             {.local_steps = kShardedLocalSteps, .momentum = momentum});
  for (int64_t step = 0; step < steps; ++step) SubnetTrainer::learn(model, subnets, c.rank(), step);
  subnets.consolidate();
  return clone_of(model.state());
}

/// The part of a whole state that a rank has at home.
Values at_home(const StateDict& whole, const SubnetCuts& cuts, Communicator& c) {
  const RangeOf range_of = home_ranges(cuts, c.rank(), c.size());
  StateDict part;
  for (const auto& [name, tensor] : whole) {
    const auto range = range_of(name);
    if (!range) {
      part.add(name, tensor);
      continue;
    }
    std::vector<int64_t> indices;
    for (int64_t i = range->begin; i < range->end; ++i) indices.push_back(i);
    TensorSlice slice;
    (range->dimension == 0 ? slice.rows : slice.columns) = indices;
    part.add(name, take(tensor, slice));
  }
  return values_of(part);
}

TEST(ShardedSubnets, TrainTheBitsOfTheUnshardedRun) {
  for (const MlpNorm norm : {MlpNorm::all, MlpNorm::hidden, MlpNorm::none})
    for (const SubnetMomentum momentum : {SubnetMomentum::drop, SubnetMomentum::travel})
      for (const int ranks : {1, 2, 3, 4})
        for (const int64_t steps : {0, 3, 8, 11})
          on_all(ranks, [=](Communicator& c) {
            Sharded sharded(c, norm, momentum);
            sharded.train(0, steps);
            sharded.subnets->consolidate();
            sharded.subnets->bring_home();
            const StateDict whole = unsharded(c, norm, momentum, steps);
            EXPECT_EQ(values_of(sharded.model.state()), at_home(whole, sharded.cuts, c))
                << ranks << " ranks, " << steps << " steps, norm " << static_cast<int>(norm);
            return Values();
          });
}

TEST(ShardedSubnets, AreTheSameBitsOverEveryTransport) {
  const auto run = [](Communicator& c) {
    Sharded sharded(c, MlpNorm::all, SubnetMomentum::travel);
    sharded.train(0, 10);
    sharded.subnets->consolidate();
    return values_of(sharded.model.state());
  };
  const auto expected = on_all(3, run);
  for (const auto& kind : transport_kinds()) EXPECT_EQ(on_all(kind.make(3, {}), run), expected) << kind.name;
}

// The parts of all ranks together compute what the whole model computes, up to the order of the sum over neurons.
TEST(ShardedSubnets, TogetherComputeTheOutputsOfTheWholeModel) {
  for (const MlpNorm norm : {MlpNorm::all, MlpNorm::hidden, MlpNorm::none})
    for (const int64_t steps : {0, 6, 8})
      on_all(3, [=](Communicator& c) {
        Sharded sharded(c, norm, SubnetMomentum::drop);
        sharded.train(0, steps);
        sharded.subnets->consolidate();
        const Tensor x = Tensor::empty({5, 6});
        normal(1)(x, RandomStream({.seed = 3}));
        Mlp model(one_hidden(norm));
        model.initialize(1);
        model.load_state(unsharded(c, norm, SubnetMomentum::drop, steps));
        const NoGradient no_gradient;
        sharded.model.set_training(false);
        model.set_training(false);
        const auto expected = model(x).value().to_vector<double>(),
                   found = sharded.model(x).value().to_vector<double>();
        for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5);
        return Values();
      });
}

TEST(ShardedSubnets, GoOnAsIfNobodyHadConsolidated) {
  const auto run = [](bool stops, Communicator& c) {
    Sharded sharded(c, MlpNorm::hidden, SubnetMomentum::travel);
    for (int64_t step = 0; step < 11; ++step) {
      if (stops) sharded.subnets->consolidate();
      if (stops && step % 3 == 1) sharded.subnets->bring_home();
      sharded.train(step, step + 1);
    }
    sharded.subnets->consolidate();
    return values_of(sharded.model.state());
  };
  EXPECT_EQ(on_all(3, [&](Communicator& c) { return run(true, c); }),
            on_all(3, [&](Communicator& c) { return run(false, c); }));
}

TEST(ShardedSubnets, ResumeWithinRoundsAndBetweenThem) {
  for (const int64_t stop : {0, 2, 4, 7})
    on_all(3, [=](Communicator& c) {
      Sharded first(c, MlpNorm::hidden, SubnetMomentum::travel), again(c, MlpNorm::hidden, SubnetMomentum::travel, 9);
      first.train(0, stop);
      first.subnets->consolidate();
      first.subnets->bring_home();
      again.model.load_state(first.model.state());
      again.local->load_state(first.local->state());
      again.subnets->load_state(clone_of(first.subnets->state()), stop);
      first.train(stop, 10);
      again.train(stop, 10);
      first.subnets->consolidate();
      again.subnets->consolidate();
      EXPECT_EQ(values_of(again.model.state()), values_of(first.model.state())) << stop;
      return Values();
    });
}

// A rank sends the neurons that leave it, once a round. IndependentSubnets sends them home and away again.
TEST(ShardedSubnets, SendHalfOfWhatTheUnshardedRunSends) {
  constexpr int64_t kSteps = 40 * kShardedLocalSteps, kNeurons = 400;
  on_all(4, [=](Communicator& c) {
    Sharded sharded(c, MlpNorm::none, SubnetMomentum::drop, 5, kNeurons);
    sharded.train(0, kSteps);
    const auto of_sharded = static_cast<double>(c.traffic().sent_payload);
    unsharded(c, MlpNorm::none, SubnetMomentum::drop, kSteps, kNeurons);
    const double of_unsharded = static_cast<double>(c.traffic().sent_payload) - of_sharded;
    EXPECT_NEAR(of_sharded / of_unsharded, 0.5, 0.03);
    return Values();
  });
}

TEST(ShardedSubnets, RefuseModelsThatCannotBeSharded) {
  const auto message = [](const Mlp::Options& shape) {
    std::string found;
    on_all(1, [&](Communicator& c) {
      Mlp model(shape);
      model.initialize(1);
      Sgd local(model.parameters(), {.lr = 0.1});
      const SubnetCuts cuts(model.subnet_plan(SubnetScope::fc), model);
      found = message_of<InputError>([&] { ShardedSubnets(model, local, c, cuts, {}); });
      return Values();
    });
    return found;
  };
  EXPECT_NE(message({.widths = {6, 5, 5, 3}}).find("the model has 2 hidden layers (hidden layer 1 to hidden layer 2)"),
            std::string::npos);
}

}  // namespace
}  // namespace tern::test
