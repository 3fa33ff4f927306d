#include "tern/dist/methods/data_parallel.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tern/core/error.h"
#include "tern/dist/comm/failure.h"
#include "tern/dist/methods/replicas.h"
#include "tern/dist/methods/tensors.h"
#include "tern/layers/normalization.h"
#include "tern/optim/optimizer.h"
#include "tests/dist/codec/codec_support.h"
#include "tests/dist/methods/training_support.h"
#include "tests/support/cuda.h"
#include "tests/support/message_of.h"

namespace tern::test {
namespace {

using Results = std::vector<std::vector<float>>;

Results data_parallel(Transports transports, const DataParallel::Options& options, int64_t steps = 10) {
  return train_on_ranks(std::move(transports), [&](const RankTraining& rank) {
    DataParallel optimizer(rank.model, rank.local, rank.communicator, options);
    rank.steps(optimizer, 0, steps);
  });
}

DataParallel::Options with_codec(const std::string& codec, int64_t fusion_bytes = 1 << 20) {
  return {.averaging = {.codec = codec, .fusion = {.fusion_bytes = fusion_bytes}, .seed = 5}, .check_every = 1};
}

template <class Net>
class DataParallelOf : public testing::Test {};
using Nets = testing::Types<SmallNet, SmallConvNet>;
TYPED_TEST_SUITE(DataParallelOf, Nets);

TYPED_TEST(DataParallelOf, WithoutACodecIsOneProcessWithTheWholeBatch) {
  const auto alone = train_on_ranks<TypeParam>(make_in_process(1), [](const RankTraining& rank) {
    DistributedOptimizer optimizer(rank.model, rank.local);
    rank.steps(optimizer, 0, 10);
  })[0];
  for (const int ranks : {1, 2, 3, 4, 8}) {
    const auto together = train_on_ranks<TypeParam>(make_in_process(ranks), [](const RankTraining& rank) {
      DataParallel optimizer(rank.model, rank.local, rank.communicator, with_codec("none"));
      rank.steps(optimizer, 0, 10);
    });
    double difference = 0, length = 0;
    for (size_t i = 0; i < alone.size(); ++i) {
      difference += std::pow(double{alone[i]} - together[0][i], 2);
      length += std::pow(double{alone[i]}, 2);
    }
    EXPECT_LT(std::sqrt(difference / length), 1e-5) << ranks << " ranks";
  }
}

TEST(DataParallel, LeavesTheSameBitsOnAllRanksTransportsAndWithOverlap) {
  for (const char* codec : {"none", "bf16", "ternary", "qsgd:code=entropy", "error-feedback:topk:ratio=0.1"}) {
    for (const int64_t fusion_bytes : {1 << 20, 200}) {
      DataParallel::Options options = with_codec(codec, fusion_bytes);
      const Results expected = data_parallel(make_in_process(3), options);
      EXPECT_EQ(expected, Results(3, expected[0])) << codec;
      EXPECT_EQ(data_parallel(make_tcp_job(3, {}), options), expected) << codec;
      options.averaging.overlap = true;
      EXPECT_EQ(data_parallel(make_in_process(3), options), expected) << codec;
    }
  }
}

TEST(DataParallel, FusionChangesNoScalerAndNoDraw) {
  EXPECT_EQ(data_parallel(make_in_process(2), with_codec("ternary", 1 << 20)),
            data_parallel(make_in_process(2), with_codec("ternary", 1)));
}

TEST(DataParallel, GoesOnFromASavedResidual) {
  for (const char* codec : {"error-feedback:ternary", "onebit"}) {
    const Results undisturbed = data_parallel(make_in_process(2), with_codec(codec));
    const Results resumed = train_on_ranks(make_in_process(2), [&](const RankTraining& rank) {
      StateDict state;
      {
        DataParallel before(rank.model, rank.local, rank.communicator, with_codec(codec));
        rank.steps(before, 0, 4);
        state = before.state();
        EXPECT_EQ(state.size(), 4u);
      }
      DataParallel after(rank.model, rank.local, rank.communicator, with_codec(codec));
      after.load_state(state, 4);
      rank.steps(after, 4, 10);
    });
    EXPECT_EQ(resumed, undisturbed) << codec;
  }
}

DataParallel::Options stale(const std::string& codec, const std::string& exchange = "",
                            int64_t fusion_bytes = 1 << 20) {
  DataParallel::Options options = with_codec(codec, fusion_bytes);
  options.averaging.exchange = exchange;
  options.averaging.stale = true;
  return options;
}

/// SGD by hand whose step t uses the gradient of step t - 1; step 0 changes nothing.
void delayed_step(const RankTraining& rank, int64_t step, std::vector<Tensor>& gradients) {
  rank.backward(step);
  const std::vector<Tensor> last = std::exchange(gradients, {});
  for (const auto& [name, parameter] : rank.model.parameters()) gradients.push_back(parameter->gradient());
  if (last.empty()) return;
  for (size_t i = 0; i < last.size(); ++i) rank.model.parameters()[i].parameter->set_gradient(last[i]);
  rank.local.step();
}

TEST(DataParallel, AStaleStepUsesTheMeansOfTheStepBefore) {
  const auto by_hand = train_on_ranks(make_in_process(1), [](const RankTraining& rank) {
    std::vector<Tensor> gradients;
    for (int64_t step = 0; step < 10; ++step) delayed_step(rank, step, gradients);
  })[0];
  EXPECT_EQ(data_parallel(make_in_process(1), stale("none"))[0], by_hand);
  for (const int ranks : {2, 3, 8}) {
    const auto together = data_parallel(make_in_process(ranks), stale("none"))[0];
    for (size_t i = 0; i < by_hand.size(); ++i) ASSERT_NEAR(together[i], by_hand[i], 1e-5) << ranks << " ranks";
  }
  EXPECT_EQ(data_parallel(make_in_process(2), stale("none"), 1), data_parallel(make_in_process(2), stale("none"), 0));
}

// The codes of a step draw from that step's random numbers, although the next step uses them.
TEST(DataParallel, AStaleStepUsesTheCodedMeansOfTheStepBefore) {
  for (const char* codec : {"ternary", "qsgd:bits=4,bucket=64", "error-feedback:topk:ratio=0.1"}) {
    const Results by_hand = train_on_ranks(make_in_process(2), [&](const RankTraining& rank) {
      Averaging averaging(rank.communicator, averaged_parameters(rank.model, "by hand"), with_codec(codec).averaging);
      const auto parameters = rank.model.parameters();
      std::vector<Tensor> last;
      for (int64_t step = 0; step < 10; ++step) {
        rank.backward(step);
        averaging.begin(step);
        for (size_t i = 0; i < parameters.size(); ++i) averaging.give(i, parameters[i].parameter->gradient());
        const std::vector<Tensor> means = averaging.finish();
        for (size_t i = 0; i < last.size(); ++i) parameters[i].parameter->set_gradient(last[i]);
        if (!last.empty()) rank.local.step();
        last = means;
      }
    });
    EXPECT_EQ(data_parallel(make_in_process(2), stale(codec)), by_hand) << codec;
  }
}

TEST(DataParallel, StaleStepsLeaveTheSameBitsOnAllRanksAndTransports) {
  const std::pair<const char*, const char*> table[] = {{"none", "ring"},
                                                       {"bf16", "ring"},
                                                       {"bf16", "reduce-scatter"},
                                                       {"ternary", "allgather"},
                                                       {"ternary", "server"},
                                                       {"ternary", "ternary-ring"},
                                                       {"qsgd", "reduce-scatter"},
                                                       {"qsgd:code=entropy", "allgather"},
                                                       {"error-feedback:topk:ratio=0.1", "allgather"},
                                                       {"none", "powersgd:rank=1"}};
  for (const auto& [codec, exchange] : table) {
    SCOPED_TRACE(std::string(codec) + ", " + exchange);
    for (const int64_t fusion_bytes : {1 << 20, 200}) {  // one message; two messages under way at once
      DataParallel::Options options = stale(codec, exchange, fusion_bytes);
      const Results expected = data_parallel(make_in_process(3), options);
      EXPECT_EQ(expected, Results(3, expected[0]));
      EXPECT_EQ(data_parallel(make_tcp_job(3, {}), options), expected);
      options.averaging.stale = false;
      EXPECT_NE(data_parallel(make_in_process(3), options), expected);
    }
  }
}

TEST(DataParallel, GoesOnFromSavedMeans) {
  for (const char* codec : {"none", "qsgd", "onebit"}) {
    SCOPED_TRACE(codec);
    const Results undisturbed = data_parallel(make_in_process(2), stale(codec));
    const Results resumed = train_on_ranks(make_in_process(2), [&](const RankTraining& rank) {
      StateDict state;
      {
        DataParallel before(rank.model, rank.local, rank.communicator, stale(codec));
        rank.steps(before, 0, 4);
        before.consolidate();
        state = before.state();
        EXPECT_EQ(state.size(), std::string(codec) == "onebit" ? 8u : 4u);
      }
      DataParallel after(rank.model, rank.local, rank.communicator, stale(codec));
      after.load_state(state, 4);
      rank.steps(after, 4, 10);
      DataParallel fresh(rank.model, rank.local, rank.communicator, with_codec(codec));
      EXPECT_EQ(
          message_of<InputError>([&] { fresh.load_state(state, 4); }),
          "data-parallel: found the means of a step that the next step uses, expected none without stale exchanges");
    });
    EXPECT_EQ(resumed, undisturbed);
  }
}

TEST(DataParallel, GoesBackToASavedStepWhileMessagesTravel) {
  const auto copy_of = [](const StateDict& state) {
    StateDict copy;
    for (const auto& [name, tensor] : state) copy.add(name, tensor.clone());
    return copy;
  };
  const Results undisturbed = data_parallel(make_in_process(2), stale("none"));
  const Results gone_back = train_on_ranks(make_in_process(2), [&](const RankTraining& rank) {
    DataParallel method(rank.model, rank.local, rank.communicator, stale("none"));
    rank.steps(method, 0, 4);
    const StateDict state = method.state(), model = copy_of(rank.model.state()), local = copy_of(rank.local.state());
    rank.steps(method, 4, 5);
    method.load_state(state, 4);
    rank.model.load_state(model);
    rank.local.load_state(local);
    rank.steps(method, 4, 10);
  });
  EXPECT_EQ(gone_back, undisturbed);
}

TEST(DataParallel, GoesOnFromTheResidualsOfBothStagesOfOneBit) {
  DataParallel::Options options = with_codec("onebit");
  options.averaging.exchange = "reduce-scatter";
  const Results undisturbed = data_parallel(make_in_process(3), options);
  EXPECT_EQ(undisturbed, Results(3, undisturbed[0]));
  for (const bool keeps : {true, false}) {
    const Results resumed = train_on_ranks(make_in_process(3), [&](const RankTraining& rank) {
      StateDict state;
      {
        DataParallel before(rank.model, rank.local, rank.communicator, options);
        rank.steps(before, 0, 4);
        for (const auto& [name, tensor] : before.state())
          if (keeps || !name.starts_with(".shard.")) state.add(name, tensor);
      }
      DataParallel after(rank.model, rank.local, rank.communicator, options);
      after.load_state(state, 4);
      rank.steps(after, 4, 10);
      DataParallel gathers(rank.model, rank.local, rank.communicator, with_codec("onebit"));
      const std::string message = message_of<InputError>([&] { gathers.load_state(state, 4); });
      EXPECT_EQ(message.ends_with("expected none, because the exchange keeps nothing"), keeps) << message;
    });
    EXPECT_EQ(resumed == undisturbed, keeps);
  }
}

TEST(DataParallel, LeavesSmallAndNamedTensorsInFloat) {
  // `first` has 33·20 + 33 parameters, `last` 5·33 + 5.
  const auto payload = [](const FusionOptions& fusion) {
    uint64_t sent = 0;
    train_on_ranks(make_in_process(2), [&](const RankTraining& rank) {
      DataParallel::Options options = with_codec("ternary");
      options.averaging.fusion = fusion;
      options.check_every = 0;
      DataParallel optimizer(rank.model, rank.local, rank.communicator, options);
      rank.steps(optimizer, 0, 1);
      if (rank.communicator.rank() == 0) sent = rank.communicator.traffic().sent_payload;
    });
    return sent;
  };
  const auto coded = [](int64_t n) { return static_cast<uint64_t>(4 + 2 * (4 * (n / 32) + (n % 32 + 7) / 8)); };
  EXPECT_EQ(payload({}), coded(660) + coded(33) + coded(165) + coded(5));
  // In a ring of two ranks, each rank sends one part, half of the floats, in each of the two phases.
  EXPECT_EQ(payload({.min_compress = 34}), coded(660) + coded(165) + 4 * (33 + 5));
  EXPECT_EQ(payload({.keep_float = "last.*"}), coded(660) + coded(33) + 4 * (165 + 5));
}

TEST(DataParallel, DecaysWeightsInTheGradient) {
  const Results decayed = data_parallel(
      make_in_process(2), {.averaging = {.codec = "none"}, .weight_decay_in_gradient = 0.1, .check_every = 0});
  const auto alone = train_on_ranks(make_in_process(1), [](const RankTraining& rank) {
    Sgd local(rank.model.parameters(), {.lr = kSmallSgd.lr, .momentum = kSmallSgd.momentum, .weight_decay = 0.1});
    DistributedOptimizer optimizer(rank.model, local);
    for (int64_t step = 0; step < 10; ++step) small_step(rank.model, local, optimizer, step, 0, 1);
  })[0];
  for (size_t i = 0; i < alone.size(); ++i) ASSERT_NEAR(decayed[0][i], alone[i], 1e-5);
}

TEST(DataParallel, DecaysInTheGradientWhatTheModelLetsDecay) {
  struct Net final : Layer, PartlyDecayed {
    Variable forward(const Variable& x) override { return last(first(x)); }
    bool decays(std::string_view parameter) const override { return parameter.ends_with("weight"); }
    Linear& first = add<Linear>("first", {.in = 20, .out = 33, .relu = true});
    Linear& last = add<Linear>("last", {.in = 33, .out = 5});
  };
  const auto decayed = train_on_ranks<Net>(make_in_process(2), [](const RankTraining& rank) {
    DataParallel optimizer(rank.model, rank.local, rank.communicator,
                           {.averaging = {.codec = "none"}, .weight_decay_in_gradient = 0.1, .check_every = 0});
    rank.steps(optimizer, 0, 10);
  });
  const auto alone = train_on_ranks<Net>(make_in_process(1), [](const RankTraining& rank) {
    std::vector<ParameterGroup> groups = {{.parameters = {}, .settings = {.weight_decay = 0.1}}, {}};
    for (const auto& named : rank.model.parameters())
      groups[named.name.ends_with("weight") ? 0 : 1].parameters.push_back(named);
    Sgd local(groups, {.lr = kSmallSgd.lr, .momentum = kSmallSgd.momentum});
    DistributedOptimizer optimizer(rank.model, local);
    for (int64_t step = 0; step < 10; ++step) small_step(rank.model, local, optimizer, step, 0, 1);
  })[0];
  for (size_t i = 0; i < alone.size(); ++i) ASSERT_NEAR(decayed[0][i], alone[i], 1e-5);
}

TEST(DataParallel, NamesTheRankWhoseParametersDiffer) {
  const auto errors = with_communicators(make_in_process(4), [](Communicator& c) {
    SmallNet model;
    model.initialize(c.rank() == 2 ? 2 : 1);
    Sgd local(model.parameters(), kSmallSgd);
    DataParallel optimizer(model, local, c, with_codec("none"));
    small_step(model, local, optimizer, 0, c.rank(), 4);
  });
  EXPECT_EQ(errors, std::vector<std::string>(4, "rank 2: its parameters are not those of rank 0 after step 0"));
}

TEST(DataParallel, GivesEveryRankTheBuffersOfRank0) {
  struct Normalized final : Layer {
    Variable forward(const Variable& x) override { return last(norm(x)); }
    BatchNorm1d& norm = add<BatchNorm1d>("norm", {.features = 20});
    Linear& last = add<Linear>("last", {.in = 20, .out = 5});
  };
  std::vector<std::vector<double>> buffers(3);
  with_communicators(make_in_process(3), [&](Communicator& c) {
    Normalized model;
    model.initialize(1);
    Sgd local(model.parameters(), kSmallSgd);
    DataParallel optimizer(model, local, c, with_codec("none"));
    small_step(model, local, optimizer, 0, c.rank(), 3);
    const auto own = model.buffers()[0].buffer->to_vector<double>();
    const Traffic before = c.traffic();
    optimizer.consolidate();
    EXPECT_EQ((c.traffic() - before).sent_payload, 0u);
    buffers[static_cast<size_t>(c.rank())] = model.buffers()[0].buffer->to_vector<double>();
    EXPECT_EQ(own == buffers[static_cast<size_t>(c.rank())], c.rank() == 0);
  });
  EXPECT_FALSE(buffers[0].empty());
  EXPECT_EQ(buffers, decltype(buffers)(3, buffers[0]));
}

TEST(DataParallel, RefusesWhatDoesNotFit) {
  const auto message = [](const AveragingOptions& averaging) {
    return message_of<InputError>([&] {
      SmallNet model;
      model.initialize(1);
      Sgd local(model.parameters(), kSmallSgd);
      TransportCommunicator c(std::move(make_in_process(1)[0]));
      DataParallel(model, local, c, {.averaging = averaging});
    });
  };
  EXPECT_EQ(message({.codec = "qsgd", .exchange = "ring"}).substr(0, 41), "exchange ring takes none, fp16 and bf16, ");
  EXPECT_EQ(message({.fusion = {.keep_float = "fc*"}}),
            "keep-float 'fc*' matches none of the model's parameters; the last is 'last.bias'");
  EXPECT_EQ(message({.overlap = true, .stale = true}),
            "averaging: overlap and stale contradict each other: stale messages travel during the whole next step");
}

TEST(DataParallel, EndsAtTheFirstBrokenGradient) {
  for (const bool overlap : {false, true}) {
    const auto errors = with_communicators(make_tcp_job(3, {}), [&](Communicator& c) {
      SmallNet model;
      model.initialize(1);
      if (c.rank() == 1) model.last.bias->value().fill(NAN);
      Sgd local(model.parameters(), kSmallSgd);
      DataParallel::Options options = with_codec("ternary", 200);
      options.averaging.overlap = overlap;
      DataParallel optimizer(model, local, c, options);
      small_step(model, local, optimizer, 0, c.rank(), 3);
    });
    EXPECT_EQ(errors[1], "gradient of 'last.bias' has NaN or infinite elements, or a norm beyond f32");
    EXPECT_NE(errors[0].find("rank 1"), std::string::npos) << errors[0];
    EXPECT_EQ(errors[2], errors[0]);
  }
}

TEST(DataParallel, SaysThatARankIsLost) {
  const auto begin = Clock::now();
  const Deadlines deadlines = {.heartbeat = std::chrono::milliseconds(50),
                               .dead_after = std::chrono::milliseconds(500),
                               .operation = std::chrono::milliseconds(500)};
  for (const bool overlap : {false, true}) {
    const auto errors = with_communicators(make_tcp_job(3, deadlines), [&](Communicator& c) {
      SmallNet model;
      model.initialize(1);
      Sgd local(model.parameters(), kSmallSgd);
      DataParallel::Options options = with_codec("ternary", 200);
      options.averaging.overlap = overlap;
      DataParallel optimizer(model, local, c, options);
      for (int64_t step = 0; step < (c.rank() == 1 ? 2 : 3); ++step)
        small_step(model, local, optimizer, step, c.rank(), 3);
    });
    EXPECT_EQ(errors[1], "");
    EXPECT_NE(errors[0].find("rank 1"), std::string::npos) << errors[0];
    EXPECT_EQ(errors[2], errors[0]);
  }
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
}

/// The gradients after a step in which each rank gave normal numbers: the means of what the codes say.
std::vector<std::vector<float>> means_of_filters(const std::string& codec, bool as_filters, Device device) {
  std::vector<std::vector<float>> found;
  const auto errors = with_communicators(make_in_process(2), [&](Communicator& c) {
    SmallConvNet model;
    model.initialize(1, DType::f32, device);
    Sgd local(model.parameters(), kSmallSgd);
    DataParallel::Options options = with_codec(codec);
    options.weight_decay_in_gradient = 0.5;
    DataParallel method(model, local, c, options);
    method.begin_step(0);
    for (const auto& [name, parameter] : model.parameters()) {
      const Tensor& value = parameter->value();
      const Tensor gradient = gaussian(value.shape(), 1 + static_cast<uint64_t>(c.rank())).to(device);
      parameter->set_gradient(as_filters && value.rank() == 4 ? gradient.to(value.format()) : gradient);
    }
    method.step();
    if (c.rank() == 0)
      for (const auto& [name, parameter] : model.parameters())
        found.push_back(parameter->gradient().to_vector<float>());
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  return found;
}

TEST(CudaDataParallel, CodesFiltersWithTheBytesOfTheCpu) {
  if (const std::string why = why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  const Device cuda{DeviceType::cuda, 0};
  for (const char* codec : {"none", "ternary", "qsgd:bits=4", "hadamard", "topk-block:keep=5,run=20", "onebit"}) {
    const auto expected = means_of_filters(codec, false, {});
    EXPECT_EQ(means_of_filters(codec, false, cuda), expected) << codec;
    EXPECT_EQ(means_of_filters(codec, true, cuda), expected) << codec << ", in the format of the filters";
  }
}

TEST(Replicas, HaveTheChecksumOfTheirRowMajorBytes) {
  const Tensor x = gaussian({3, 4, 2, 5});
  EXPECT_EQ(checksum(x.to(MemoryFormat::channels_last), 1), checksum(x, 1));
  EXPECT_NE(checksum(gaussian({3, 4, 2, 5}, 2), 1), checksum(x, 1));
}

/// A network with a module named `shard`.
struct ShardNet final : Layer {
  Variable forward(const Variable& x) override { return last(relu(first(x))); }
  Linear& first = add<Linear>("shard", {.in = 20, .out = 9});
  Linear& last = add<Linear>("last", {.in = 9, .out = 5});
};

TEST(DataParallel, GoesOnFromTheStateOfAModuleNamedAsThePrefixOfStates) {
  for (const auto& [codec, exchange] :
       {std::pair("onebit", "allgather"), {"onebit", "reduce-scatter"}, {"none", "powersgd:rank=1"}}) {
    SCOPED_TRACE(exchange);
    DataParallel::Options options = with_codec(codec);
    options.averaging.exchange = exchange;
    const auto train = [&](bool in_two_parts) {
      return train_on_ranks<ShardNet>(make_in_process(2), [&](const RankTraining& rank) {
        auto method = std::make_unique<DataParallel>(rank.model, rank.local, rank.communicator, options);
        rank.steps(*method, 0, 3);
        if (in_two_parts) {
          const StateDict state = method->state();
          EXPECT_GT(state.size(), 0u);
          method = std::make_unique<DataParallel>(rank.model, rank.local, rank.communicator, options);
          method->load_state(state, 3);
        }
        rank.steps(*method, 3, 6);
      });
    };
    EXPECT_EQ(train(true), train(false));
  }
}

TEST(DataParallel, RefusesAStateInWhichSomethingIsMissing) {
  expect_on_ranks(1, [](Communicator& c) {
    SmallNet model;
    model.initialize(1);
    Sgd local(model.parameters(), kSmallSgd);
    const auto refusal = [&](const DataParallel::Options& options, const StateDict& state) {
      DataParallel method(model, local, c, options);
      method.load_state({}, 0);
      return message_of<InputError>([&] { method.load_state(state, 3); });
    };
    EXPECT_EQ(refusal(with_codec("ternary"), {}), "");
    EXPECT_EQ(refusal(with_codec("onebit"), {}),
              "the codec's state has no residual of 'last.bias', expected one after a round");
    DataParallel::Options some = with_codec("error-feedback:topk");
    some.averaging.fusion.keep_float = "last.*";
    const std::string first = model.trained_parameters().front().name;
    StateDict state;
    for (const auto& [name, parameter] : model.trained_parameters())
      if (name != first && !name.starts_with("last.")) state.add(name, Tensor::zeros(parameter->value().shape()));
    EXPECT_EQ(refusal(some, state), "the codec's state has no residual of '" + first + "', expected one after a round");
    const std::string no_mean = "load: no tensor named 'last mean.";
    EXPECT_EQ(refusal(stale("none"), {}).substr(0, no_mean.size()), no_mean);
  });
}

}  // namespace
}  // namespace tern::test
