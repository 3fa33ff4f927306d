#include "tern/dist/methods/local_sgd.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tern/core/error.h"
#include "tern/dist/comm/failure.h"
#include "tern/dist/methods/data_parallel.h"
#include "tern/dist/methods/replicas.h"
#include "tern/layers/normalization.h"
#include "tests/dist/methods/training_support.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

using Results = std::vector<std::vector<float>>;
using Results64 = std::vector<std::vector<double>>;

/// Parameters and buffers in one vector.
std::vector<double> state_of(Module& model) {
  std::vector<double> all;
  for (const auto& [name, tensor] : model.state()) {
    const auto values = tensor.to_vector<double>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

/// A network with every kind of state: momentum, and statistics that only the forward pass changes.
struct NormalizedNet final : Layer {
  Variable forward(const Variable& x) override { return last(norm(first(x))); }
  Linear& first = add<Linear>("first", {.in = 20, .out = 9, .relu = true});
  BatchNorm1d& norm = add<BatchNorm1d>("norm", {.features = 9});
  Linear& last = add<Linear>("last", {.in = 9, .out = 5});
};

LocalSgd::Options every(int64_t local_steps, const std::string& codec = "none") {
  return {.local_steps = local_steps, .averaging = {.codec = codec, .seed = 5}, .check_every = 1};
}

Results local_sgd(Transports transports, const LocalSgd::Options& options, int64_t steps) {
  return train_on_ranks(std::move(transports), [&](const RankTraining& rank) {
    LocalSgd optimizer(rank.model, rank.local, rank.communicator, options);
    rank.steps(optimizer, 0, steps);
  });
}

// Two rounds, calculated by hand. Momentum continues from the rank's own last step.
TEST(LocalSgd, AveragesModelsAndKeepsMomentumLocal) {
  constexpr int kRanks = 3;
  std::vector<std::unique_ptr<SmallNet>> models;
  std::vector<std::unique_ptr<Sgd>> optimizers;
  for (int rank = 0; rank < kRanks; ++rank) {
    models.push_back(std::make_unique<SmallNet>());
    models.back()->initialize(1);
    optimizers.push_back(std::make_unique<Sgd>(models.back()->parameters(), kSmallSgd));
  }
  for (int64_t step = 0; step < 8; ++step) {
    for (size_t rank = 0; rank < kRanks; ++rank) {
      DistributedOptimizer alone(*models[rank], *optimizers[rank]);
      small_step(*models[rank], *optimizers[rank], alone, step, static_cast<int>(rank), kRanks);
    }
    if (step % 4 != 3) continue;
    for (size_t i = 0; i < models[0]->parameters().size(); ++i) {
      const auto value = [&](size_t rank) { return models[rank]->parameters()[i].parameter->value(); };
      for (int64_t e = 0; e < value(0).numel(); ++e) {
        double sum = 0;
        for (size_t rank = 0; rank < kRanks; ++rank) sum += value(rank).data<float>()[e];
        for (size_t rank = 0; rank < kRanks; ++rank) value(rank).data<float>()[e] = static_cast<float>(sum / kRanks);
      }
    }
  }
  const auto expected = parameters_of(*models[0]);
  const Results found = local_sgd(make_in_process(kRanks), every(4), 8);
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(found[0][i], expected[i], 1e-5);
}

// Without momentum, the mean of the models after one step is one step with the mean gradient.
TEST(LocalSgd, OfOneStepIsDataParallel) {
  const auto parameters = [](bool local_sgd_of_one) {
    return train_on_ranks<SmallConvNet>(make_in_process(3), [&](const RankTraining& rank) {
      Sgd local(rank.model.parameters(), {.lr = 0.1});
      std::unique_ptr<DistributedOptimizer> optimizer;
      if (local_sgd_of_one)
        optimizer = std::make_unique<LocalSgd>(rank.model, local, rank.communicator, every(1));
      else
        optimizer = std::make_unique<DataParallel>(rank.model, local, rank.communicator, DataParallel::Options{});
      for (int64_t step = 0; step < 5; ++step)
        small_step(rank.model, local, *optimizer, step, rank.communicator.rank(), 3);
    })[0];
  };
  const auto one = parameters(true), other = parameters(false);
  for (size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(one[i], other[i], 1e-5);
}

TEST(LocalSgd, IsTheSameOnAllRanksWhereItSynchronises) {
  for (const char* codec : {"none", "ternary", "error-feedback:topk:ratio=0.1"}) {
    const Results synchronised = local_sgd(make_in_process(3), every(4, codec), 8);
    EXPECT_EQ(synchronised, Results(3, synchronised[0])) << codec;
    EXPECT_EQ(local_sgd(make_tcp_job(3, {}), every(4, codec), 8), synchronised) << codec;
    const Results between = local_sgd(make_in_process(3), every(4, codec), 7);
    EXPECT_NE(between[0], between[1]) << codec;
  }
}

TEST(LocalSgd, SendsOnlyWhereItSynchronises) {
  train_on_ranks(make_in_process(2), [](const RankTraining& rank) {
    LocalSgd optimizer(rank.model, rank.local, rank.communicator, every(3));
    for (int64_t step = 0; step < 6; ++step) {
      const uint64_t before = rank.communicator.traffic().sent_payload;
      rank.steps(optimizer, step, step + 1);
      const uint64_t sent = rank.communicator.traffic().sent_payload - before;
      EXPECT_EQ(sent, step % 3 == 2 ? 4u * (20 * 33 + 33 + 33 * 5 + 5) : 0u);
    }
  });
}

TEST(LocalSgd, ShowsTheMeanOfTheModelsWithinARound) {
  Results64 own(3), shown(3);
  const auto errors = with_communicators(make_in_process(3), [&](Communicator& c) {
    const auto rank = static_cast<size_t>(c.rank());
    NormalizedNet model;
    model.initialize(1);
    Sgd local(model.parameters(), kSmallSgd);
    LocalSgd optimizer(model, local, c, every(4, "ternary"));
    for (int64_t step = 0; step < 2; ++step) small_step(model, local, optimizer, step, c.rank(), 3);
    EXPECT_EQ(message_of<Error>([&] { optimizer.state(); }), "local-sgd: a checkpoint is taken after consolidate");
    own[rank] = state_of(model);
    const Traffic before = c.traffic();
    optimizer.consolidate();
    EXPECT_EQ(c.traffic().sent_payload, before.sent_payload);
    EXPECT_GT(c.traffic().sent_overhead, before.sent_overhead);
    shown[rank] = state_of(model);
    optimizer.consolidate();
    EXPECT_EQ(state_of(model), shown[rank]);
    optimizer.begin_step(2);
    EXPECT_EQ(state_of(model), own[rank]);
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
  EXPECT_NE(own[0], own[1]);
  EXPECT_EQ(shown, Results64(3, shown[0]));
  for (size_t i = 0; i < own[0].size(); ++i)
    EXPECT_NEAR(shown[0][i], (own[0][i] + own[1][i] + own[2][i]) / 3, 1e-6 * (1 + std::abs(own[0][i])));
}

TEST(LocalSgd, TrainsTheSameHoweverOftenTheMeanIsLookedAt) {
  for (const char* codec : {"none", "ternary", "error-feedback:ternary"}) {
    std::vector<uint64_t> payloads;
    const auto train = [&](int64_t between_looks) {
      return train_on_ranks<NormalizedNet>(make_in_process(3), [&](const RankTraining& rank) {
        LocalSgd optimizer(rank.model, rank.local, rank.communicator, every(4, codec));
        for (int64_t step = 0; step < 11; ++step) {
          rank.steps(optimizer, step, step + 1);
          if ((step + 1) % between_looks != 0) continue;
          optimizer.consolidate();
          if ((step + 1) % 4 == 0) continue;
          for (const auto& [name, buffer] : floating_buffers(rank.model)) buffer->fill(7);  // as a calibration does
        }
        optimizer.consolidate();
        if (rank.communicator.rank() == 0) payloads.push_back(rank.communicator.traffic().sent_payload);
      });
    };
    const Results undisturbed = train(100);
    for (const int64_t between_looks : {1, 3}) EXPECT_EQ(train(between_looks), undisturbed) << codec;
    EXPECT_EQ(payloads, std::vector<uint64_t>(3, payloads[0])) << codec;
  }
}

TEST(LocalSgd, GoesOnFromACheckpointAtAnyStepAsIfNeverStopped) {
  constexpr int64_t kSteps = 9;
  struct Job {
    int ranks;
    Transports (*make)(int, const Deadlines&);
    const char* codec;
  };
  const Job jobs[] = {
      {2, [](int ranks, const Deadlines& deadlines) { return make_in_process(ranks, deadlines); }, "none"},
      {4, make_tcp_job, "ternary"},
      {4, make_tcp_job, "error-feedback:ternary"}};
  for (const auto& [ranks, make, codec] : jobs) {
    const auto options = every(4, codec);
    Results64 undisturbed(static_cast<size_t>(ranks));
    train_on_ranks<NormalizedNet>(make(ranks, {}), [&](const RankTraining& rank) {
      LocalSgd optimizer(rank.model, rank.local, rank.communicator, options);
      rank.steps(optimizer, 0, kSteps);
      undisturbed[static_cast<size_t>(rank.communicator.rank())] = state_of(rank.model);
    });
    for (int64_t stop = 1; stop < kSteps; ++stop) {
      Results64 resumed(static_cast<size_t>(ranks));
      train_on_ranks<NormalizedNet>(make(ranks, {}), [&](const RankTraining& rank) {
        LocalSgd before(rank.model, rank.local, rank.communicator, options);
        rank.steps(before, 0, stop);
        before.consolidate();
        const StateDict method = before.state();
        NormalizedNet model;
        model.initialize(77);
        model.load_state(rank.model.state());
        Sgd local(model.parameters(), kSmallSgd);
        local.load_state(rank.local.state());
        LocalSgd after(model, local, rank.communicator, options);
        after.load_state(method, stop);
        after.consolidate();  // as a run does that evaluates before its first step
        EXPECT_EQ(state_of(model), state_of(rank.model));
        RankTraining{rank.communicator, model, local}.steps(after, stop, kSteps);
        resumed[static_cast<size_t>(rank.communicator.rank())] = state_of(model);
      });
      EXPECT_EQ(resumed, undisturbed) << codec << ", stopped after step " << stop;
    }
  }
}

TEST(LocalSgd, RefusesAStateOfAnotherPlaceInTheRound) {
  train_on_ranks(make_in_process(2), [](const RankTraining& rank) {
    LocalSgd optimizer(rank.model, rank.local, rank.communicator, every(4));
    rank.steps(optimizer, 0, 3);
    optimizer.consolidate();
    const StateDict within = optimizer.state();
    LocalSgd other(rank.model, rank.local, rank.communicator, every(4));
    EXPECT_EQ(message_of<InputError>([&] { other.load_state(within, 4); }),
              "load: 'own.first.weight' of shape [33, 20] is not in a round of local SGD");
    EXPECT_EQ(message_of<InputError>([&] { other.load_state({}, 3); }),
              "load: no tensor named 'own.first.weight', a round of local SGD expects one of shape [33, 20]");
    EXPECT_EQ(message_of<Error>([&] { LocalSgd(rank.model, rank.local, rank.communicator, every(4)).begin_step(6); }),
              "local-sgd: step 6 lies within a round of 4 steps that was neither begun nor loaded");
  });
}

TEST(LocalSgd, NamesTheRankWhoseParametersDiffer) {
  const auto errors = with_communicators(make_in_process(3), [](Communicator& c) {
    SmallNet model;
    model.initialize(c.rank() == 0 ? 2 : 1);
    Sgd local(model.parameters(), kSmallSgd);
    LocalSgd optimizer(model, local, c, every(1));
    small_step(model, local, optimizer, 0, c.rank(), 3);
  });
  EXPECT_EQ(errors, std::vector<std::string>(3, "rank 0: its parameters are not those of rank 1 after step 0"));
}

}  // namespace
}  // namespace tern::test
