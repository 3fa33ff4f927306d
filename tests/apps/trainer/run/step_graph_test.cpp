#include "tern/trainer/run/step_graph.h"

#include <gtest/gtest.h>

#include <functional>

#include "tern/core/error.h"
#include "tern/kernels/elementwise.h"
#include "tern/kernels/update.h"
#include "tern/layers/linear.h"
#include "tern/optim/adam.h"
#include "tern/optim/sgd.h"
#include "tests/support/cuda.h"
#include "tests/support/values.h"

namespace tern {
namespace {

using namespace trainer;

constexpr Device kGpu{DeviceType::cuda, 0};

/// A batch with the field "x", [n], whose elements are `value`.
DeviceBatch batch_of(int64_t n, double value) {
  return {Batch(Tensor::zeros({1}, {.dtype = DType::i64, .device = kGpu}),
                {{"x", Tensor::full({n}, value, {.device = kGpu})}}),
          {},
          DType::f32};
}

/// Its training step is loss = 2 · x, with a tensor that it needs only meanwhile.
struct CudaStepGraph : testing::Test {
  void SetUp() override {
    if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  }

  Module model;
  StepGraph graph{model, [](const DeviceBatch& batch) {
                    StepOutput output{.loss = Tensor::empty_like(batch["x"]), .outputs = {}};
                    Tensor meanwhile = Tensor::empty_like(batch["x"]);
                    kernels::scale(batch["x"], 4, meanwhile);
                    kernels::scale(meanwhile, 0.5, output.loss);
                    return output;
                  }};
};

TEST_F(CudaStepGraph, RunsBatchesOfTheRecordedShapesInTheirMemory) {
  const DeviceBatch even = batch_of(2, 0), odd = batch_of(2, 0), third = batch_of(2, 0);
  EXPECT_FALSE(graph.takes(even));
  EXPECT_FALSE(graph.takes(odd));
  EXPECT_FALSE(graph.takes(even));
  uint32_t step = 4;
  Tensor before;
  for (const DeviceBatch* batch : {&odd, &even, &odd, &even, &third, &even, &third, &odd}) {
    EXPECT_TRUE(graph.takes(*batch));
    EXPECT_FALSE(graph.takes(batch_of(3, 0)));
    (*batch)["x"].fill(step);
    const Tensor loss = graph.run(*batch, step).loss;
    expect_values(loss, {2.0 * step, 2.0 * step}, 0);
    if (before.defined()) expect_values(before, {2.0 * (step - 1), 2.0 * (step - 1)}, 0);  // it may still be read
    before = loss;
    ++step;
  }
  EXPECT_THROW(graph.run(batch_of(2, 0), step), Error) << "nothing is recorded there";
}

TEST_F(CudaStepGraph, RecordsNothingWhileShapesChange) {
  for (int64_t step = 0; step < 12; ++step) EXPECT_FALSE(graph.takes(batch_of(1 + step % 2, 0)));
  EXPECT_EQ(graph.launches(), 0u);
  const DeviceBatch batch = batch_of(7, 0);
  EXPECT_FALSE(graph.takes(batch));
  EXPECT_TRUE(graph.takes(batch));
  EXPECT_EQ(graph.launches(), 2u);
}

/// w ← 0.5 · w. Writes no copies.
struct Halving final : StepRule {
  void check_group(const ParameterGroup&) const override {}
  std::vector<std::string> state_names(const GroupSettings&) const override { return {}; }
  void update(std::span<const kernels::ParameterUpdate> updates, const Step&) const override {
    for (const kernels::ParameterUpdate& update : updates) {
      Tensor w = update.w;
      kernels::scale(w, 0.5, w);
    }
  }
};

using Rule = std::shared_ptr<const StepRule>;

/// A layer in bf16 and its training, whose loss is the sum of the squares of the layer's outputs.
struct TrainedLayer {
  explicit TrainedLayer(const Rule& rule)
      : layer({.in = 3, .out = 2, .bias = false}), optimizer({{.parameters = layer.parameters()}}, 0.1, 0, rule) {
    layer.initialize(1, DType::f32, kGpu);
    optimizer.begin_step();
  }
  StepOutput step(const DeviceBatch& batch) {
    optimizer.zero_gradients();
    layer.begin_step({});
    const Variable y = layer.forward(Variable(batch["x"]));
    y.backward(y.value());
    optimizer.issue_step();
    return {.loss = y.value()};
  }
  std::vector<float> outputs(const DeviceBatch& batch) {
    const NoGradient no_gradient;
    return layer.forward(Variable(batch["x"])).value().to_vector<float>();
  }

  Linear layer;
  Optimizer optimizer;
};

/// Rows of bf16 on the device, for the field "x".
DeviceBatch rows(double first) {
  const Tensor x = Tensor::from<double>({2, 3}, std::vector<double>{first, 2, -1, 0.5, 3, 1});
  return {Batch(Tensor::zeros({2}, {.dtype = DType::i64, .device = kGpu}), {{"x", x.to(DType::bf16).to(kGpu)}}),
          {},
          DType::bf16};
}

// The parameters change between steps as evaluations with averages, loading and exchanges change them. The other
// layer converts its weight again after each update.
TEST_F(CudaStepGraph, ReadsCopiesOfWhatTheParametersAreNow) {
  const std::pair<const char*, Rule> rules[] = {
      {"sgd", Sgd::rule({.momentum = 0.9})}, {"adam", Adam::rule({})}, {"no copies", std::make_shared<Halving>()}};
  for (const auto& [name, rule] : rules) {
    SCOPED_TRACE(name);
    TrainedLayer recorded(rule), plain(rule);
    size_t recordings = 0, replays = 0;
    StepGraph steps{recorded.layer, [&](const DeviceBatch& batch) {
                      ++recordings;
                      return recorded.step(batch);
                    }};
    const DeviceBatch even = rows(1), odd = rows(-2);
    const auto set = [](TrainedLayer& trained, double value) {
      trained.layer.weight.value().copy_from(Tensor::full({2, 3}, value).to(kGpu));
    };
    const auto evaluate_average = [&](TrainedLayer& trained) {
      const Tensor own = trained.layer.weight.value();
      trained.layer.weight.set_value(Tensor::full({2, 3}, 0.7).to(kGpu));
      const auto found = trained.outputs(even);
      trained.layer.weight.set_value(own);
      return found;
    };
    for (int64_t step = 0; step < 16; ++step) {
      SCOPED_TRACE(step);
      const DeviceBatch& batch = step % 2 == 0 ? even : odd;
      if (step == 8)
        for (TrainedLayer* each : {&recorded, &plain}) set(*each, 0.3);
      if (step == 10) {
        EXPECT_EQ(evaluate_average(recorded), evaluate_average(plain));
      }
      if (step == 12)
        for (TrainedLayer* each : {&recorded, &plain})
          each->layer.weight.set_value(Tensor::full({2, 3}, -0.4).to(kGpu));
      const bool replayed = steps.takes(batch);
      replays += replayed ? 1 : 0;
      const Tensor loss = replayed ? steps.run(batch, static_cast<uint32_t>(step)).loss : recorded.step(batch).loss;
      EXPECT_EQ(loss.to_vector<float>(), plain.step(batch).loss.to_vector<float>());
      plain.layer.weight.value().mark_written();
      EXPECT_EQ(recorded.layer.weight.value().to_vector<float>(), plain.layer.weight.value().to_vector<float>());
      EXPECT_EQ(recorded.outputs(odd), plain.outputs(odd));
    }
    EXPECT_EQ(replays, 13u);
    EXPECT_EQ(recordings, 4u) << "two, and two again in the other memory";
  }
}

}  // namespace
}  // namespace tern
