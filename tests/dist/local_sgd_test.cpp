#include "tern/dist/local_sgd.h"

#include <gtest/gtest.h>

#include "tern/core/error.h"
#include "tern/dist/data_parallel.h"
#include "tern/dist/peer_error.h"
#include "tern/layers/batch_norm.h"
#include "tests/dist/training_support.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

using Results = std::vector<std::vector<float>>;

LocalSgd::Options every(int64_t local_steps, const std::string& codec = "none") {
  return {.local_steps = local_steps, .averaging = {.codec = codec, .seed = 5}, .check_every = 1};
}

Results local_sgd(Transports transports, const LocalSgd::Options& options, int64_t steps) {
  return train_on_ranks(std::move(transports), [&](const RankTraining& rank) {
    LocalSgd optimizer(rank.model, rank.local, rank.communicator, options);
    rank.steps(optimizer, 0, steps);
  });
}

// Two rounds by hand: momentum goes on where the rank's own last step left it.
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

// Without momentum the mean of one step's models is one step by the mean gradient.
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

TEST(LocalSgd, SynchronisesEarlyWhereTheFullModelIsAskedFor) {
  const Results results = train_on_ranks(make_in_process(3), [](const RankTraining& rank) {
    LocalSgd optimizer(rank.model, rank.local, rank.communicator, every(4, "ternary"));
    rank.steps(optimizer, 0, 2);
    EXPECT_EQ(message_of<Error>([&] { optimizer.state(); }),
              "local-sgd: state 2 steps after a synchronisation; consolidate first");
    optimizer.consolidate();
    const uint64_t sent = rank.communicator.traffic().sent_payload;
    optimizer.consolidate();
    EXPECT_EQ(rank.communicator.traffic().sent_payload, sent);
    rank.steps(optimizer, 2, 6);
  });
  EXPECT_EQ(results, Results(3, results[0]));
}

TEST(LocalSgd, GoesOnFromASavedResidual) {
  const auto options = every(2, "error-feedback:ternary");
  const Results undisturbed = local_sgd(make_in_process(2), options, 8);
  const Results resumed = train_on_ranks(make_in_process(2), [&](const RankTraining& rank) {
    StateDict state;
    {
      LocalSgd before(rank.model, rank.local, rank.communicator, options);
      rank.steps(before, 0, 4);
      state = before.state();
    }
    LocalSgd after(rank.model, rank.local, rank.communicator, options);
    after.load_state(state);
    rank.steps(after, 4, 8);
  });
  EXPECT_EQ(resumed, undisturbed);
}

TEST(LocalSgd, AveragesBatchNormStatistics) {
  struct Normalized final : Module {
    Variable forward(const Variable& x) override { return last(norm(x)); }
    BatchNorm1d& norm = add<BatchNorm1d>("norm", {.features = 20});
    Linear& last = add<Linear>("last", {.in = 20, .out = 5});
  };
  const auto means_of = [](Normalized& model) { return model.norm.running_mean.to_vector<double>(); };
  std::vector<std::vector<double>> own(2), averaged(2);
  with_communicators(make_in_process(2), [&](Communicator& c) {
    const auto rank = static_cast<size_t>(c.rank());
    for (const bool together : {false, true}) {
      Normalized model;
      model.initialize(1);
      Sgd local(model.parameters(), kSmallSgd);
      LocalSgd optimizer(model, local, c, every(2, "ternary"));
      small_step(model, local, optimizer, 0, c.rank(), 2);
      if (together) optimizer.consolidate();
      (together ? averaged : own)[rank] = means_of(model);
    }
  });
  EXPECT_NE(own[0], own[1]);
  EXPECT_EQ(averaged[0], averaged[1]);
  for (size_t i = 0; i < 20; ++i) EXPECT_NEAR(averaged[0].at(i), (own[0].at(i) + own[1].at(i)) / 2, 1e-6);
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
