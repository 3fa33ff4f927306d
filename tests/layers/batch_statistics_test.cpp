#include "tern/layers/normalization.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tern/layers/containers.h"
#include "tern/layers/dropout.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

struct Net final : Layer {
  Net() { layers.append<BatchNorm1d>({.features = 1}); }
  Variable forward(const Variable& x) override { return layers(x); }
  Sequential& layers = add<Sequential>("layers");
};

const Tensor kFirst = Tensor::from<float>({2, 1}, {1, 3}), kSecond = Tensor::from<float>({4, 1}, {10, 10, 14, 14});

TEST(BatchStatistics, AreTheMeansOverTheBatchesAfterACalibration) {
  Net net;
  net.initialize(1);
  std::vector<Tensor> batches = {kFirst, kSecond};
  const int64_t used = calibrate_batch_statistics(net, [&] {
    if (batches.empty()) return false;
    net(batches.back());
    batches.pop_back();
    return true;
  });
  EXPECT_EQ(used, 2);
  const StateDict state = net.state();
  EXPECT_FLOAT_EQ(state.at("layers.0.running_mean").data<float>()[0], (2.f + 12.f) / 2);
  EXPECT_FLOAT_EQ(state.at("layers.0.running_var").data<float>()[0], (2.f + 16.f / 3) / 2);
  EXPECT_EQ(state.at("layers.0.num_batches_tracked").item(), 0);  // it counts batches of training
  EXPECT_TRUE(net.training());
  net(kFirst);  // the layer updates its running statistics again
  EXPECT_FLOAT_EQ(state.at("layers.0.running_mean").data<float>()[0], 0.9f * 7 + 0.1f * 2);
}

// As torch.optim.swa_utils.update_bn: each layer has the mean over its own calls.
TEST(BatchStatistics, AreTheMeansOverTheCallsOfALayer) {
  for (const int calls_in_first : {0, 2}) {
    Net net;
    net.initialize(1);
    int batch = 0;
    calibrate_batch_statistics(net, [&] {
      if (batch == 3) return false;
      for (int call = 0; call < (batch == 0 ? calls_in_first : 1); ++call) net(kFirst);
      if (batch == 1) net(kSecond);
      ++batch;
      return true;
    });
    // The calls: with 0 in the first batch, kFirst, kSecond, kFirst; with 2, two more of kFirst before them.
    const float first = static_cast<float>(calls_in_first) + 2, all = first + 1;
    const StateDict state = net.state();
    EXPECT_FLOAT_EQ(state.at("layers.0.running_mean").data<float>()[0], (first * 2 + 12) / all);
    EXPECT_FLOAT_EQ(state.at("layers.0.running_var").data<float>()[0], (first * 2 + 16.f / 3) / all);
  }
}

TEST(BatchStatistics, NeedFirstValues) {
  BatchNorm1d norm({.features = 2, .weight = false, .bias = false});
  EXPECT_EQ(message_of<Error>([&] { BatchStatistics by_batch(norm); }),
            "model: no running statistics yet; call initialize(seed) on the model first");
  EXPECT_EQ(message_of<Error>([&] {
              norm(Tensor::zeros({2, 2}));
            }),
            "model: 'running_mean' has no value yet; call initialize(seed) on the model before its first forward");
  EXPECT_EQ(message_of<Error>([&] { norm.state(); }),
            "state: 'running_mean' has no value yet; call initialize(seed) first");
}

TEST(BatchStatistics, StayAsTheyAreWithoutBatches) {
  Net net;
  net.initialize(1);
  EXPECT_EQ(calibrate_batch_statistics(net, [] { return false; }), 0);
  EXPECT_EQ(net.state().at("layers.0.running_var").data<float>()[0], 1);
}

TEST(BatchStatistics, ForgetABatchThatIsNotFinite) {
  Net net;
  net.initialize(1);
  net.set_training(false);
  Tensor broken = kFirst.clone();
  broken.data<float>()[0] = std::numeric_limits<float>::infinity();
  const Tensor mean = net.state().at("layers.0.running_mean"), variance = net.state().at("layers.0.running_var");
  {
    const BatchStatistics by_batch(net);
    net(Variable(broken));
  }
  EXPECT_EQ(mean.data<float>()[0], 0) << "the batch served itself only";
  EXPECT_EQ(variance.data<float>()[0], 1);
  int left = 1;
  const auto next = [&](const Variable& x) {
    return [&] {
      if (left-- == 0) return false;
      net(x);
      return true;
    };
  };
  calibrate_batch_statistics(net, next(Variable(broken)));
  EXPECT_FALSE(std::isfinite(mean.data<float>()[0]));
  left = 1;
  calibrate_batch_statistics(net, next(kFirst));
  EXPECT_EQ(mean.data<float>()[0], 2);
}

TEST(BatchStatistics, ACalibrationLeavesOtherLayersAlone) {
  BatchNorm1d norm({.features = 1, .running = false});
  norm.initialize(1);
  const double momentum = norm.momentum();
  calibrate_batch_statistics(norm, [&, left = 1]() mutable {
    norm(kFirst);
    return left-- > 0;
  });
  EXPECT_EQ(norm.momentum(), momentum);
}

TEST(BatchStatistics, OfTheBatchItselfServeAnEvaluation) {
  Net net;
  net.initialize(1);
  net.set_training(false);
  const auto running = net(kFirst).value().to_vector<float>();
  {
    const BatchStatistics by_batch(net);
    const auto y = net(kFirst).value().to_vector<float>();
    EXPECT_NEAR(y[0], -1, 1e-4);
    EXPECT_NEAR(y[1], 1, 1e-4);
  }
  EXPECT_EQ(net(kFirst).value().to_vector<float>(), running);
  EXPECT_EQ(net.state().at("layers.0.num_batches_tracked").item(), 0);
}

}  // namespace
}  // namespace tern
