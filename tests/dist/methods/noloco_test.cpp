#include "tern/dist/methods/noloco.h"

#include <gtest/gtest.h>

#include <set>

#include "tern/core/error.h"
#include "tests/dist/methods/training_support.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

using Results = std::vector<std::vector<float>>;

constexpr NoLoCo::Options kGossip = {.local_steps = 3, .lr = 0.7, .momentum = 0.5, .seed = 5};

Results noloco(Transports transports, const NoLoCo::Options& options, int64_t steps) {
  return train_on_ranks(std::move(transports), [&](const RankTraining& rank) {
    NoLoCo optimizer(rank.model, rank.local, rank.communicator, options);
    rank.steps(optimizer, 0, steps);
  });
}

/// Two ranks always meet each other, and one rank stays alone. So their rounds can be followed by hand, in f64 and in
/// the paper's form.
void expect_the_paper_s_steps(int count, double momentum) {
  NoLoCo::Options options = kGossip;
  options.momentum = momentum;
  const AloneTraining ranks(count);
  const auto& models = ranks.models;
  std::vector<std::vector<double>> slow, velocity;
  const auto values = [](Module& model) {
    const auto all = parameters_of(model);
    return std::vector<double>(all.begin(), all.end());
  };
  for (const auto& model : models) {
    slow.push_back(values(*model));
    velocity.emplace_back(slow.back().size());
  }
  for (int64_t step = 0; step < 9; ++step) {
    ranks.step(step);
    if (step % 3 != 2) continue;
    const auto before = slow;
    std::vector<double> change(before[0].size()), mean(before[0].size());
    for (size_t rank = 0; rank < models.size(); ++rank) {
      const std::vector<double> fast = values(*models[rank]);
      for (size_t i = 0; i < fast.size(); ++i) {
        change[i] += (fast[i] - before[rank][i]) / count;
        mean[i] += before[rank][i] / count;
      }
    }
    for (size_t rank = 0; rank < models.size(); ++rank) {
      size_t at = 0;
      for (const auto& [name, parameter] : models[rank]->parameters())
        for (float& value : parameter->value().span<float>()) {
          velocity[rank][at] = momentum * velocity[rank][at] + 0.7 * change[at] + 0.7 * (mean[at] - before[rank][at]);
          slow[rank][at] += velocity[rank][at];
          value = static_cast<float>(slow[rank][at++]);
        }
    }
  }
  const Results found = noloco(make_in_process(count), options, 9);
  for (size_t rank = 0; rank < models.size(); ++rank) {
    const auto expected = parameters_of(*models[rank]);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(found[rank][i], expected[i], 2e-5) << rank << " " << i;
  }
}

TEST(NoLoCo, TakesItsStepWithTheMeansOfThePair) {
  expect_the_paper_s_steps(2, 0.5);
  expect_the_paper_s_steps(2, 0);
}

TEST(NoLoCo, TakesItsStepAloneWithItsOwnModel) {
  expect_the_paper_s_steps(1, 0.5);
  expect_the_paper_s_steps(1, 0);
}

TEST(NoLoCo, HasTheSameBitsOverTcp) {
  EXPECT_EQ(noloco(make_tcp_job(5, {}), kGossip, 7), noloco(make_in_process(5), kGossip, 7));
}

// Rank 4 of 5 has a partner in some rounds and stays alone in others. Every rank sends 4 bytes a parameter to one rank.
TEST(NoLoCo, MeetsOneRankARound) {
  const uint64_t bytes = 4 * (20 * 33 + 33 + 33 * 5 + 5);
  std::vector<std::set<int64_t>> alone(5);
  train_on_ranks(make_in_process(5), [&](const RankTraining& rank) {
    NoLoCo optimizer(rank.model, rank.local, rank.communicator, kGossip);
    for (int64_t round = 0; round < 12; ++round) {
      const Traffic before = rank.communicator.traffic();
      rank.steps(optimizer, 3 * round, 3 * round + 3);
      const uint64_t sent = rank.communicator.traffic().sent_payload - before.sent_payload;
      if (sent == 0)
        alone[static_cast<size_t>(rank.communicator.rank())].insert(round);
      else
        EXPECT_EQ(sent, bytes);
    }
  });
  std::set<int64_t> rounds;
  size_t ranks = 0;
  for (const auto& each : alone) {
    for (const int64_t round : each) EXPECT_TRUE(rounds.insert(round).second) << "two ranks alone in round " << round;
    ranks += each.empty() ? 0 : 1;
  }
  EXPECT_EQ(rounds.size(), 12u);
  EXPECT_GT(ranks, 2u);
}

TEST(NoLoCo, ShowsTheMeanOfAllRanksAndGoesOnWithItsOwnModel) {
  Results shown;
  const Results looked = train_on_ranks(make_in_process(4), [&](const RankTraining& rank) {
    NoLoCo optimizer(rank.model, rank.local, rank.communicator, kGossip);
    for (int64_t step = 0; step < 8; ++step) {
      rank.steps(optimizer, step, step + 1);
      optimizer.consolidate();
      const Tensor first = rank.model.parameters()[0].parameter->value();
      Tensor all = Tensor::empty({4, first.numel()});
      rank.communicator.all_gather(first, all).wait();
      if (rank.communicator.rank() != 0) continue;
      for (int64_t other = 1; other < 4; ++other)
        EXPECT_EQ(all.slice(other, other + 1).to_vector<float>(), all.slice(0, 1).to_vector<float>());
    }
    optimizer.begin_step(8);
  });
  EXPECT_EQ(looked, noloco(make_in_process(4), kGossip, 8));
  EXPECT_NE(looked[0], looked[1]);
}

TEST(NoLoCo, AveragesTheBuffersOfAPair) {
  Results before(2), after(2);
  train_on_ranks<NormalizedNet>(make_in_process(2), [&](const RankTraining& rank) {
    NoLoCo optimizer(rank.model, rank.local, rank.communicator, kGossip);
    const auto mean_buffer = [&] { return rank.model.buffers().front().buffer->to_vector<float>(); };
    const auto me = static_cast<size_t>(rank.communicator.rank());
    rank.steps(optimizer, 0, 2);
    before[me] = mean_buffer();
    rank.steps(optimizer, 2, 3);
    after[me] = mean_buffer();
  });
  EXPECT_NE(before[0], before[1]);
  EXPECT_EQ(after[0], after[1]);
}

TEST(NoLoCo, GoesOnFromACheckpointAtAnyStepAsIfNeverStopped) {
  const auto make = [](Module& model, Optimizer& local, Communicator& communicator) {
    return std::make_unique<NoLoCo>(model, local, communicator, kGossip);
  };
  const auto undisturbed = train_with_stop(make_in_process(3), 0, 8, make);
  for (int64_t stop = 1; stop < 8; ++stop)
    EXPECT_EQ(train_with_stop(make_in_process(3), stop, 8, make), undisturbed) << "after step " << stop;
}

TEST(NoLoCo, RefusesWhatDoesNotFit) {
  expect_on_ranks(1, [](Communicator& c) {
    SmallNet model;
    model.initialize(1);
    Sgd local(model.parameters(), kSmallSgd);
    const auto message = [&](const NoLoCo::Options& options) {
      return message_of<InputError>([&] { NoLoCo(model, local, c, options); });
    };
    EXPECT_EQ(message({.local_steps = 0}), "noloco: 0 local steps, expected 1 or more");
    EXPECT_EQ(message({.lr = 0}), "noloco: an outer learning rate of 0, expected above 0");
    EXPECT_EQ(message({.momentum = 1}), "noloco: an outer momentum of 1, expected [0, 1)");
    EXPECT_EQ(message_of<Error>([&] { NoLoCo(model, local, c, kGossip).begin_step(4); }),
              "noloco: step 4 of a run that was neither begun nor loaded");
  });
}

}  // namespace
}  // namespace tern::test
