#include "tern/dist/methods/local_sgd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "tern/core/error.h"
#include "tern/dist/comm/failure.h"
#include "tern/dist/methods/data_parallel.h"
#include "tern/dist/methods/replicas.h"
#include "tern/kernels/elementwise.h"
#include "tern/optim/muon.h"
#include "tests/dist/methods/training_support.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

using Results = std::vector<std::vector<float>>;
using Results64 = std::vector<std::vector<double>>;

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
  const AloneTraining ranks(kRanks);
  const auto& models = ranks.models;
  for (int64_t step = 0; step < 8; ++step) {
    ranks.step(step);
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

// Between two rounds the model is the common one. A program may change it there, on all ranks alike.
TEST(LocalSgd, GoesOnFromWhatAProgramMakesOfTheModelBetweenRounds) {
  const auto halved_after_a_round = [](bool anew) {
    return train_on_ranks(make_in_process(2), [&](const RankTraining& rank) {
      std::optional<LocalSgd> optimizer;
      optimizer.emplace(rank.model, rank.local, rank.communicator, every(3));
      rank.steps(*optimizer, 0, 3);
      for (const auto& [name, parameter] : rank.model.parameters()) {
        Tensor value = parameter->value();
        kernels::scale(value, 0.5, value);
      }
      if (anew) optimizer.emplace(rank.model, rank.local, rank.communicator, every(3));
      rank.steps(*optimizer, 3, 6);
    });
  };
  EXPECT_EQ(halved_after_a_round(false), halved_after_a_round(true));
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
  struct Resumed {
    int ranks;
    Transports (*make)(int, const Deadlines&);
    const char* codec;
  };
  const Resumed jobs[] = {
      {2, [](int ranks, const Deadlines& deadlines) { return make_in_process(ranks, deadlines); }, "none"},
      {4, make_tcp_job, "ternary"},
      {4, make_tcp_job, "error-feedback:ternary"}};
  for (const auto& [ranks, make, codec] : jobs) {
    const auto make_method = [&](Module& model, Optimizer& local, Communicator& communicator) {
      return std::make_unique<LocalSgd>(model, local, communicator, every(4, codec));
    };
    const Results64 undisturbed = train_with_stop(make(ranks, {}), 0, kSteps, make_method);
    for (int64_t stop = 1; stop < kSteps; ++stop)
      EXPECT_EQ(train_with_stop(make(ranks, {}), stop, kSteps, make_method), undisturbed)
          << codec << ", stopped after step " << stop;
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

TEST(LocalSgd, SendsBuffersWithTheParametersIfItCodesNeither) {
  for (const auto& [codec, exchange, messages] :
       {std::tuple("none", "", 1), {"none", "allgather", 2}, {"ternary", "", 2}})
    train_on_ranks<NormalizedNet>(make_in_process(2), [&](const RankTraining& rank) {
      const LocalSgd::Options options = {
          .local_steps = 2, .averaging = {.codec = codec, .exchange = exchange}, .check_every = 0};
      LocalSgd method(rank.model, rank.local, rank.communicator, options);
      rank.steps(method, 0, 2);
      EXPECT_EQ(rank.communicator.flight_record().operations.size(), static_cast<size_t>(messages))
          << codec << " " << exchange;
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

// --- with an outer step and fragments

LocalSgd::Options diloco(int64_t local_steps, const StreamingOptions& streaming = {}) {
  LocalSgd::Options options = every(local_steps);
  options.outer = {.lr = 0.7, .momentum = 0.9};
  options.streaming = streaming;
  return options;
}

/// All elements of the parameters with index in [begin, end).
std::vector<double> elements_of(Module& model, size_t begin, size_t end) {
  std::vector<double> all;
  const auto parameters = model.parameters();
  for (size_t i = begin; i < end; ++i) {
    const auto values = parameters[i].parameter->value().to_vector<double>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

void put_elements(Module& model, size_t begin, size_t end, const std::vector<double>& all) {
  const auto parameters = model.parameters();
  size_t at = 0;
  for (size_t i = begin; i < end; ++i)
    for (float& value : parameters[i].parameter->value().span<float>()) value = static_cast<float>(all[at++]);
}

/// A part of SmallNet's parameters that ranks exchange together, followed by hand, in f64.
struct FragmentByHand {
  size_t begin, end;
  int64_t offset;
  std::vector<double> base = {}, velocity = {}, change = {};
  bool sent = false;
};

/// Trains SmallNets as `options` says, from the definitions of DiLoCo and Streaming DiLoCo. Returns each rank's
/// parameters.
Results by_hand(int ranks, const LocalSgd::Options& options, std::vector<FragmentByHand> fragments, int64_t steps,
                MakeOptimizer make = small_sgd) {
  const AloneTraining alone(ranks, make);
  const auto& models = alone.models;
  for (FragmentByHand& fragment : fragments) {
    fragment.base = elements_of(*models[0], fragment.begin, fragment.end);
    fragment.velocity.assign(fragment.base.size(), 0);
  }
  const int64_t length = options.local_steps;
  const auto& [count, delay, mix] = options.streaming;
  for (int64_t done = 1; done <= steps; ++done) {
    alone.step(done - 1);
    for (FragmentByHand& f : fragments) {
      if ((done + delay) % length == f.offset) {
        f.change.assign(f.base.size(), 0);
        for (const auto& model : models) {
          const auto own = elements_of(*model, f.begin, f.end);
          for (size_t e = 0; e < own.size(); ++e) f.change[e] += (f.base[e] - own[e]) / ranks;
        }
        f.sent = true;
      }
      if (done % length != f.offset || !f.sent) continue;
      for (size_t e = 0; e < f.base.size(); ++e) {
        f.velocity[e] = options.outer.momentum * f.velocity[e] + f.change[e];
        f.base[e] -= options.outer.lr * (f.change[e] + options.outer.momentum * f.velocity[e]);
      }
      for (const auto& model : models) {
        auto own = elements_of(*model, f.begin, f.end);
        for (size_t e = 0; e < own.size(); ++e) own[e] = (1 - mix) * f.base[e] + mix * own[e];
        put_elements(*model, f.begin, f.end, own);
      }
    }
  }
  Results results;
  for (const auto& model : models) results.push_back(parameters_of(*model));
  return results;
}

void expect_near(const Results& found, const Results& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t rank = 0; rank < found.size(); ++rank)
    for (size_t i = 0; i < found[rank].size(); ++i) ASSERT_NEAR(found[rank][i], expected[rank][i], 2e-5) << i;
}

TEST(Diloco, TakesNesterovsStepWithTheMeanChange) {
  expect_near(local_sgd(make_in_process(3), diloco(4), 12), by_hand(3, diloco(4), {{0, 4, 0}}, 12));
}

/// Muon for the weights, momentum SGD for the biases.
std::unique_ptr<Optimizer> small_muon(Module& model) {
  ParameterGroup weights,
      biases = {.parameters = {}, .settings = {.rule = Sgd::rule({.momentum = kSmallSgd.momentum})}};
  for (const NamedParameter& each : model.parameters())
    (each.parameter->value().rank() == 2 ? weights : biases).parameters.push_back(each);
  return std::make_unique<Muon>(std::vector{weights, biases}, Muon::Options{.lr = 0.02});
}

TEST(Diloco, WithMuonInsideIsMuLoCo) {
  constexpr int kRanks = 3;
  constexpr int64_t kSteps = 12;
  const Results found = train_on_ranks(make_in_process(kRanks), [&](const RankTraining& rank) {
    const auto muon = small_muon(rank.model);
    LocalSgd optimizer(rank.model, *muon, rank.communicator, diloco(4));
    for (int64_t step = 0; step < kSteps; ++step)
      small_step(rank.model, *muon, optimizer, step, rank.communicator.rank(), kRanks);
  });
  expect_near(found, by_hand(kRanks, diloco(4), {{0, 4, 0}}, kSteps, small_muon));
}

// SmallNet's weights and biases have 660, 33, 165 and 5 elements: the first weight is a half of them.
TEST(StreamingDiloco, ExchangesOneFragmentAtATimeAndTrainsOnMeanwhile) {
  const FragmentByHand first = {0, 1, 0}, second = {1, 4, 2};
  for (const StreamingOptions& streaming :
       {StreamingOptions{2, 0, 0}, StreamingOptions{2, 1, 0}, StreamingOptions{2, 3, 0}, StreamingOptions{2, 2, 0.5}}) {
    const auto options = diloco(5, streaming);
    for (const int64_t steps : {2, 9, 17})
      expect_near(local_sgd(make_in_process(3), options, steps), by_hand(3, options, {first, second}, steps));
  }
}

TEST(StreamingDiloco, HasTheSameBitsOverTcpAndTheSameFragmentOnAllRanksAfterItsTurn) {
  const auto options = diloco(5, {.fragments = 2, .delay = 2});
  const Results found = local_sgd(make_in_process(3), options, 12);  // the second fragment's turn
  EXPECT_EQ(local_sgd(make_tcp_job(3, {}), options, 12), found);
  const auto second = [](const std::vector<float>& all) { return std::vector<float>(all.begin() + 660, all.end()); };
  EXPECT_EQ(second(found[0]), second(found[1]));
  EXPECT_NE(found[0], found[1]);
}

// A ring of two ranks sends each element once: 8n(R-1)/(RH) bytes a step.
TEST(StreamingDiloco, HasSentEachFragmentOnceByItsTurn) {
  train_on_ranks(make_in_process(2), [](const RankTraining& rank) {
    LocalSgd optimizer(rank.model, rank.local, rank.communicator, diloco(5, {.fragments = 2, .delay = 1}));
    uint64_t expected = 0;
    for (int64_t done = 1; done <= 15; ++done) {
      rank.steps(optimizer, done - 1, done);
      if (done % 5 == 2) expected += 4 * (33 + 165 + 5);
      if (done % 5 == 0) expected += 4 * 660;
      if (done % 5 == 2 || done % 5 == 0) {
        EXPECT_EQ(rank.communicator.traffic().sent_payload, expected) << done;
      }
    }
  });
}

TEST(StreamingDiloco, GoesOnFromACheckpointAtAnyStepAsIfNeverStopped) {
  constexpr int64_t kSteps = 13;
  for (const StreamingOptions& streaming :
       {StreamingOptions{1, 0, 0}, StreamingOptions{2, 0, 0}, StreamingOptions{2, 3, 0}, StreamingOptions{3, 2, 0.5}}) {
    LocalSgd::Options options = diloco(5, streaming);
    options.averaging.codec = "error-feedback:ternary";
    if (streaming.delay == 3) options.averaging.exchange = "server";  // a second round follows when the first one ends
    const auto make_method = [&](Module& model, Optimizer& local, Communicator& communicator) {
      return std::make_unique<LocalSgd>(model, local, communicator, options);
    };
    const Results64 undisturbed = train_with_stop(make_in_process(3), 0, kSteps, make_method);
    for (int64_t stop = 1; stop < kSteps; ++stop)
      EXPECT_EQ(train_with_stop(make_in_process(3), stop, kSteps, make_method), undisturbed)
          << streaming.fragments << " " << streaming.delay << ", after step " << stop;
  }
}

TEST(StreamingDiloco, RefusesWhatDoesNotFit) {
  const auto message = [](const LocalSgd::Options& options) {
    std::string text;
    expect_on_ranks(1, [&](Communicator& c) {
      SmallNet model;
      model.initialize(1);
      Sgd local(model.parameters(), kSmallSgd);
      text = message_of<InputError>([&] { LocalSgd(model, local, c, options); });
    });
    return text;
  };
  EXPECT_EQ(message(diloco(5, {.fragments = 5})),
            "local-sgd: 5 fragments, expected 1 to 4, because each has a step of the round and a parameter of its own");
  EXPECT_EQ(message(diloco(5, {.delay = 5})), "local-sgd: a delay of 5 steps, expected 0 to 4, less than the round");
  EXPECT_EQ(message(diloco(5, {.mix = 1})), "local-sgd: a mix of 1, expected [0, 1)");
  LocalSgd::Options options = every(5);
  options.outer.lr = 0;
  EXPECT_EQ(message(options), "local-sgd: an outer learning rate of 0, expected above 0");
  options.outer = {.lr = 1, .momentum = 1};
  EXPECT_EQ(message(options), "local-sgd: an outer momentum of 1, expected [0, 1)");
}

// --- SparseLoCo

constexpr size_t kKept = 9;

/// What a rank sends of a tensor: its kKept largest values, each as the mean of its bin. An element that is not sent
/// is nullopt.
std::vector<std::optional<double>> sparse_by_hand(const std::vector<double>& all) {
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return std::abs(all[i]); });
  order.resize(std::min(kKept, all.size()));
  const auto count = static_cast<double>(order.size());
  double mean = 0, squares = 0;
  for (const size_t i : order) mean += all[i] / count;
  for (const size_t i : order) squares += (all[i] - mean) * (all[i] - mean);
  const double width = 6 * std::sqrt(squares / (count - 1)) / 4;
  const auto bin_of = [&](size_t i) {
    return static_cast<size_t>(std::clamp(std::round((all[i] - mean) / width) + 2, 0.0, 3.0));
  };
  std::array<double, 4> sums = {}, counts = {};
  for (const size_t i : order) {
    sums[bin_of(i)] += all[i] - mean;
    ++counts[bin_of(i)];
  }
  std::vector<std::optional<double>> sent(all.size());
  for (const size_t i : order) sent[i] = mean + sums[bin_of(i)] / counts[bin_of(i)];
  return sent;
}

// e ← 0.95 e + (θ - own); the ranks send their largest e, which leaves e; θ ← θ - 0.8 · mean.
TEST(SparseLoCo, SendsTheLargestOfEachRanksChangeAndKeepsTheRest) {
  constexpr int kRanks = 3;
  constexpr int64_t kSteps = 12;
  for (const bool over_senders : {false, true}) {
    LocalSgd::Options options = every(4, "topk-block:keep=" + std::to_string(kKept) + ",side=64,short=full,decay=0.95");
    options.averaging.exchange = over_senders ? "allgather-sent" : "allgather";
    options.outer = {.lr = 0.8};

    const AloneTraining alone(kRanks);
    const size_t tensors = alone.models[0]->parameters().size();
    std::vector<std::vector<double>> common(tensors);
    for (size_t i = 0; i < tensors; ++i) common[i] = elements_of(*alone.models[0], i, i + 1);
    std::vector<std::vector<std::vector<double>>> residuals(kRanks, common);
    for (auto& of_rank : residuals)
      for (auto& residual : of_rank) std::ranges::fill(residual, 0);
    for (int64_t step = 0; step < kSteps; ++step) {
      alone.step(step);
      if (step % 4 != 3) continue;
      for (size_t i = 0; i < tensors; ++i) {
        std::vector<double> sums(common[i].size()), senders(common[i].size());
        for (size_t rank = 0; rank < kRanks; ++rank) {
          auto& residual = residuals[rank][i];
          const auto own = elements_of(*alone.models[rank], i, i + 1);
          for (size_t e = 0; e < own.size(); ++e) residual[e] = 0.95 * residual[e] + common[i][e] - own[e];
          const auto sent = sparse_by_hand(residual);
          for (size_t e = 0; e < own.size(); ++e) {
            if (!sent[e]) continue;
            residual[e] -= *sent[e];
            sums[e] += *sent[e];
            ++senders[e];
          }
        }
        for (size_t e = 0; e < sums.size(); ++e)
          if (senders[e] > 0) common[i][e] -= 0.8 * sums[e] / (over_senders ? senders[e] : kRanks);
        for (const auto& model : alone.models) put_elements(*model, i, i + 1, common[i]);
      }
    }
    Results expected;
    for (const auto& model : alone.models) expected.push_back(parameters_of(*model));
    expect_near(local_sgd(make_in_process(kRanks), options, kSteps), expected);
  }
}

}  // namespace
}  // namespace tern::test
