#include <gtest/gtest.h>

#include <cmath>

#include "tern/core/error.h"
#include "tern/dist/methods/subnet_plan.h"
#include "tern/optim/adam.h"
#include "tests/dist/methods/subnet_job.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

using Options = IndependentSubnets::Options;

constexpr int64_t kSubnetSteps = 11;

Values trained(Communicator& c, const Options& options) {
  SubnetTrainer trainer(c, options);
  trainer.train(0, kSubnetSteps);
  return trainer.whole();
}

std::vector<Values> trained(int ranks, const Options& options) {
  return on_all(ranks, [&](Communicator& c) { return trained(c, options); });
}

TEST(IndependentSubnets, OfOneRankAreItsOwnTraining) {
  networks::Mlp model(SubnetTrainer::shape());
  model.initialize(5);
  Sgd optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
  DistributedOptimizer alone(model, optimizer);
  for (int64_t step = 0; step < kSubnetSteps; ++step) SubnetTrainer::learn(model, alone, 0, step);
  const Values expected = values_of(model.state());
  for (const auto exchange : {SubnetExchange::coordinator, SubnetExchange::peer}) {
    const Options options = {.local_steps = 3, .exchange = exchange, .momentum = SubnetMomentum::travel};
    EXPECT_EQ(trained(1, options).front(), expected);
  }
}

TEST(IndependentSubnets, LeaveOneModelOnAllRanksWhoeverKeepsIt) {
  for (const int ranks : {2, 3, 4, 8}) {
    for (const int64_t local_steps : {1, 4}) {
      Options options = {
          .local_steps = local_steps, .exchange = SubnetExchange::coordinator, .momentum = SubnetMomentum::travel};
      const auto coordinated = trained(ranks, options);
      options.exchange = SubnetExchange::peer;
      const auto peers = trained(ranks, options);
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(coordinated[rank], coordinated[0]) << rank << " of " << ranks;
        EXPECT_EQ(peers[rank], coordinated[0]) << rank << " of " << ranks;
      }
    }
  }
}

TEST(IndependentSubnets, AreTheSameBitsOverEveryTransport) {
  const Options options = {
      .local_steps = 4, .exchange = SubnetExchange::peer, .codec = "ternary", .download = SubnetDownload::bf16};
  const auto expected = trained(3, options);
  for (const auto& kind : transport_kinds()) {
    const auto found = on_all(kind.make(3, {}), [&](Communicator& c) { return trained(c, options); });
    EXPECT_EQ(found, expected) << kind.name;
  }
}

/// A network with one hidden layer. Plain loops cut it into models, which train by themselves, and merge them.
TEST(IndependentSubnets, AreTheSubnetsThatOneCutsByHand) {
  constexpr int64_t kIn = 6, kHidden = 5, kOut = 3, kRanks = 2, kLocal = 3;
  const auto make = [](int64_t hidden) {
    auto model = std::make_unique<networks::Mlp>(
        networks::Mlp::Options{.widths = {kIn, hidden, kOut}, .norm = networks::MlpNorm::none});
    model->initialize(5);
    return model;
  };
  const auto whole = make(kHidden);
  const SubnetCuts cuts(whole->subnet_plan(SubnetScope::fc), *whole);
  for (uint32_t round = 0; round < 2; ++round) {
    const SubnetParts parts = draw_subnets(cuts, kRanks, 1, round);
    const StateDict before = clone_of(whole->state());
    whole->state().at("layers.1.bias").fill(0);
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto& part = parts[0][rank];
      const auto subnet = make(static_cast<int64_t>(part.size()));
      const StateDict narrow = subnet->state();
      const auto visit = [&](const StateDict& wide, const auto& touch) {
        for (size_t k = 0; k < part.size(); ++k) {
          const auto j = static_cast<int64_t>(k), i = part[k], width = static_cast<int64_t>(part.size());
          touch(narrow.at("layers.0.bias").data<float>()[j], wide.at("layers.0.bias").data<float>()[i]);
          for (int64_t d = 0; d < kIn; ++d)
            touch(narrow.at("layers.0.weight").data<float>()[j * kIn + d],
                  wide.at("layers.0.weight").data<float>()[i * kIn + d]);
          for (int64_t o = 0; o < kOut; ++o)
            touch(narrow.at("layers.1.weight").data<float>()[o * width + j],
                  wide.at("layers.1.weight").data<float>()[o * kHidden + i]);
        }
      };
      visit(before, [](float& mine, float& theirs) { mine = theirs; });
      narrow.at("layers.1.bias").copy_from(before.at("layers.1.bias"));
      Sgd optimizer(subnet->parameters(), {.lr = 0.1});
      DistributedOptimizer alone(*subnet, optimizer);
      for (int64_t step = 0; step < kLocal; ++step) SubnetTrainer::learn(*subnet, alone, rank, round * kLocal + step);
      visit(whole->state(), [](float& mine, float& theirs) { theirs = mine; });
      for (int64_t o = 0; o < kOut; ++o)
        whole->state().at("layers.1.bias").data<float>()[o] += narrow.at("layers.1.bias").data<float>()[o] / kRanks;
    }
  }
  const auto found = on_all(kRanks, [&](Communicator& c) {
    const auto model = make(kHidden);
    Sgd optimizer(model->parameters(), {.lr = 0.1});
    IndependentSubnets subnets(*model, optimizer, c, model->subnet_plan(SubnetScope::fc), {.local_steps = kLocal});
    for (int64_t step = 0; step < 2 * kLocal; ++step) SubnetTrainer::learn(*model, subnets, c.rank(), step);
    subnets.consolidate();
    return values_of(model->state());
  });
  EXPECT_EQ(found[1], values_of(whole->state()));
}

TEST(IndependentSubnets, DropMomentumOrLetItTravel) {
  const auto momentum_of = [](Communicator& c, SubnetMomentum momentum, double mu) {
    SubnetTrainer trainer(c, {.local_steps = 1, .momentum = momentum}, 5, mu);
    trainer.train(0, kSubnetSteps);
    return trainer.whole();
  };
  const auto run = [&](SubnetMomentum momentum, double mu) {
    return on_all(2, [&](Communicator& c) { return momentum_of(c, momentum, mu); });
  };
  // In rounds of one step, momentum has an effect only if it travels.
  EXPECT_EQ(run(SubnetMomentum::drop, 0.9), run(SubnetMomentum::drop, 0));
  EXPECT_NE(run(SubnetMomentum::travel, 0.9), run(SubnetMomentum::drop, 0));
}

// Moments travel with their neurons. Each parameter continues to count its steps.
TEST(IndependentSubnets, GoOnCountingAdamsSteps) {
  for (const auto exchange : {SubnetExchange::coordinator, SubnetExchange::peer}) {
    on_all(2, [=](Communicator& c) {
      networks::Mlp model(SubnetTrainer::shape()), again(SubnetTrainer::shape());
      model.initialize(5);
      again.initialize(6);
      Adam adam(model.parameters(), {.lr = 0.01}), other(again.parameters(), {.lr = 0.01});
      const Options options = {.local_steps = 2, .exchange = exchange, .momentum = SubnetMomentum::travel};
      IndependentSubnets subnets(model, adam, c, model.subnet_plan(SubnetScope::fc), options),
          resumed(again, other, c, again.subnet_plan(SubnetScope::fc), options);
      const auto expect_steps = [](Adam& optimizer, int64_t steps) {
        for (const auto& [name, tensor] : optimizer.state()) {
          if (!name.starts_with("step.")) continue;
          ASSERT_EQ(tensor.item(), steps) << name;
        }
      };
      for (int64_t step = 0; step < 5; ++step) {
        SubnetTrainer::learn(model, subnets, c.rank(), step);
        expect_steps(adam, step + 1);
      }
      subnets.consolidate();
      expect_steps(adam, 5);
      copy_state(clone_of(model.state()), again.state(), "the model");
      other.load_state(clone_of(adam.state()));
      resumed.load_state(clone_of(subnets.state()), 5);
      for (int64_t step = 5; step < 9; ++step) {
        SubnetTrainer::learn(model, subnets, c.rank(), step);
        SubnetTrainer::learn(again, resumed, c.rank(), step);
      }
      expect_steps(other, 9);
      subnets.consolidate();
      resumed.consolidate();
      EXPECT_EQ(values_of(again.state()), values_of(model.state()));
      return Values();
    });
  }
}

TEST(IndependentSubnets, KeepEachNeuronsMomentumBesideIt) {
  // The momentum of each weight is a multiple of that weight. Both must always move together.
  on_all(3, [](Communicator& c) {
    SubnetTrainer trainer(c, {.local_steps = 1, .exchange = SubnetExchange::peer, .momentum = SubnetMomentum::travel});
    const auto visit = [&](const auto& touch) {
      for (const auto& [name, parameter] : trainer.model.parameters()) {
        const Tensor momentum = trainer.local->state().at("momentum." + name);
        ASSERT_EQ(momentum.shape(), parameter->value().shape()) << name;
        const float* w = parameter->value().template data<float>();
        for (float& v : momentum.span<float>()) touch(v, *w++, name);
      }
    };
    visit([](float& v, float w, const std::string&) { v = 3 * w; });
    for (int64_t round = 0; round < 4; ++round) {
      trainer.subnets->begin_step(round);
      visit([](float v, float w, const std::string& name) { ASSERT_EQ(v, 3 * w) << name; });
      trainer.subnets->step();  // no gradients, so nothing changes
    }
    trainer.subnets->consolidate();
    visit([](float v, float w, const std::string& name) { ASSERT_EQ(v, 3 * w) << name; });
    return Values();
  });
}

TEST(IndependentSubnets, GoOnInTheMiddleOfARoundAsIfNeverStopped) {
  for (const auto exchange : {SubnetExchange::coordinator, SubnetExchange::peer})
    for (const auto momentum : {SubnetMomentum::travel, SubnetMomentum::drop})
      for (const auto& [codec, download] :
           {std::pair{"none", SubnetDownload::f32}, {"ternary", SubnetDownload::f32}, {"qsgd", SubnetDownload::fp16}}) {
        const Options options = {
            .local_steps = 4, .exchange = exchange, .momentum = momentum, .codec = codec, .download = download};
        const auto undisturbed = trained(3, options);
        for (const int64_t stop : {4, 6}) {
          const auto resumed = on_all(3, [&](Communicator& c) {
            StateDict model, optimizer, method;
            {
              SubnetTrainer trainer(c, options);
              trainer.train(0, stop);
              trainer.subnets->consolidate();
              model = clone_of(trainer.model.state());
              optimizer = clone_of(trainer.local->state());
              method = clone_of(trainer.subnets->state());
            }
            SubnetTrainer trainer(c, options, 77);
            trainer.model.load_state(model);
            trainer.local->load_state(optimizer);
            trainer.subnets->load_state(method, stop);
            EXPECT_EQ(trainer.whole(), values_of(model));
            trainer.train(stop, kSubnetSteps);
            return trainer.whole();
          });
          EXPECT_EQ(resumed, undisturbed) << codec << ", stopped before step " << stop;
        }
      }
}

TEST(IndependentSubnets, TrainTheSameHoweverOftenTheWholeModelIsLookedAt) {
  const Options options = {.local_steps = 4, .codec = "ternary", .download = SubnetDownload::fp16};
  const auto looked_at = on_all(3, [&](Communicator& c) {
    SubnetTrainer trainer(c, options);
    for (int64_t step = 0; step < kSubnetSteps; ++step) {
      trainer.train(step, step + 1);
      trainer.subnets->consolidate();
    }
    return trainer.whole();
  });
  EXPECT_EQ(looked_at, trained(3, options));
}

/// The change that a round adds to a weight, on any rank.
float change(float w) { return 0.1f * std::sin(100 * w); }

TEST(IndependentSubnets, BringCodedChangesHomeWithoutBiasSlow) {
  constexpr int kRuns = 2000;
  for (const auto exchange : {SubnetExchange::coordinator, SubnetExchange::peer}) {
    std::map<std::string, std::vector<double>> sums, exact;
    double first_error = 0;
    on_all(2, [&](Communicator& c) {
      for (uint64_t seed = 0; seed < kRuns; ++seed) {
        networks::Mlp model({.widths = {3, 4, 2}, .norm = networks::MlpNorm::none});
        model.initialize(5);
        Sgd optimizer(model.parameters(), {});
        IndependentSubnets subnets(model, optimizer, c, model.subnet_plan(SubnetScope::fc),
                                   {.seed = seed, .exchange = exchange, .codec = "qsgd:bits=3,norm=max"});
        Values expected = values_of(model.state());
        subnets.begin_step(0);
        for (const auto& [name, parameter] : model.parameters())
          for (float& w : parameter->value().span<float>()) w += change(w);
        subnets.step();
        subnets.consolidate();
        if (c.rank() != 0) continue;
        for (const auto& [name, values] : values_of(model.state())) {
          sums[name].resize(values.size());
          for (size_t i = 0; i < values.size(); ++i) {
            const auto w = static_cast<float>(expected.at(name)[i]);
            const double error = values[i] - double{w + change(w)};
            sums[name][i] += error;
            if (seed == 0) first_error = std::max(first_error, std::abs(error));
          }
        }
      }
      return Values();
    });
    EXPECT_GT(first_error, 1e-4);  // codes are coarse
    // Hoeffding's bound. An error is at most one unit, which is at most 0.1 / 3. The false alarm is 1e-9 per weight.
    const double bound = 0.1 / 3 * 2 * std::sqrt(std::log(2e9) / 2 / kRuns);
    for (const auto& [name, values] : sums)
      for (const double sum : values) EXPECT_LT(std::abs(sum / kRuns), bound) << name;
  }
}

TEST(IndependentSubnets, KeepWholeWeightsBeyondThePrecisionOfDownloads) {
  // Each change is half a unit of fp16. The changes would vanish if the whole weights were replaced by the downloads.
  const auto found = on_all(2, [](Communicator& c) {
    networks::Mlp model({.widths = {3, 4, 2}, .norm = networks::MlpNorm::none});
    model.initialize(5);
    for (const auto& [name, parameter] : model.parameters()) parameter->value().fill(1);
    Sgd optimizer(model.parameters(), {});
    IndependentSubnets subnets(model, optimizer, c, model.subnet_plan(SubnetScope::fc),
                               {.local_steps = 2, .download = SubnetDownload::fp16});
    for (int64_t step = 0; step < 63; ++step) {  // and ends within a round
      subnets.begin_step(step);
      for (const auto& [name, parameter] : model.parameters())
        for (float& w : parameter->value().span<float>()) w += 0x1p-13f;
      subnets.step();
    }
    subnets.consolidate();
    return values_of(model.state());
  });
  for (const auto& [name, values] : found[0])
    for (const double w : values) EXPECT_EQ(w, 1 + 63 * 0x1p-13) << name;
}

TEST(IndependentSubnets, RefuseWhatCannotWork) {
  const auto message = [](const Options& options) {
    std::string found;
    on_all(1, [&](Communicator& c) {
      found = message_of<Error>([&] { SubnetTrainer(c, options); });
      return Values();
    });
    return found;
  };
  EXPECT_NE(message({.codec = "error-feedback:topk"}).find("keeps a residual"), std::string::npos);
  EXPECT_NE(message({.codec = "onebit"}).find("keeps a residual"), std::string::npos);
  EXPECT_NE(message({.local_steps = 0}).find("0 local steps"), std::string::npos);
  on_all(1, [&](Communicator& c) {
    SubnetTrainer trainer(c, {.local_steps = 4});
    EXPECT_NE(message_of<Error>([&] { trainer.subnets->begin_step(6); }).find("step 6 lies within a round of 4"),
              std::string::npos);
    trainer.subnets->begin_step(4);
    EXPECT_NE(message_of<Error>([&] { trainer.subnets->state(); }).find("after consolidate"), std::string::npos);
    return Values();
  });
}

}  // namespace
}  // namespace tern::test
