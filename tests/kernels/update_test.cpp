#include "tern/kernels/update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/cuda.h"
#include "tests/support/values.h"

namespace tern::kernels {
namespace {

ParameterUpdate one(double w, double g, double first = 0, double second = 0) {
  return {f64({1}, {w}), f64({1}, {g}), f64({1}, {first}), f64({1}, {second}),
          Tensor::zeros({}, {.dtype = DType::i64})};
}
using Updates = std::vector<ParameterUpdate>;
Tensor number(double value) { return f64({}, {value}); }

TEST(SgdUpdate, FollowsPyTorchsForm) {
  const Updates plain{one(1, 2)};
  sgd_update(plain, {.lr = number(0.1), .gradient_scale = number(0.5)});
  expect_values(plain[0].w, {0.9});
  const Updates momentum{one(1, 2, 3)};
  sgd_update(momentum, {.lr = number(0.1), .momentum = 0.9, .weight_decay = 0.5});
  expect_values(momentum[0].first, {0.9 * 3 + 2.5});
  expect_values(momentum[0].w, {1 - 0.1 * 5.2});
  expect_values(momentum[0].g, {2});
  const Updates nesterov{one(1, 2, 3)};
  sgd_update(nesterov, {.lr = number(0.1), .momentum = 0.9, .weight_decay = 0.5, .nesterov = true});
  expect_values(nesterov[0].w, {1 - 0.1 * (2.5 + 0.9 * 5.2)});
}

TEST(AdamUpdate, CorrectsItsBias) {
  const Updates first{one(1, 2)};
  adam_update(first, {.lr = number(0.1), .epsilon = 0});
  expect_values(first[0].w, {0.9});  // the first step is lr, whatever the gradient is
  expect_values(first[0].first, {0.2});
  expect_values(first[0].second, {0.004});
  const Updates decayed{one(1, 2)};
  adam_update(decayed, {.lr = number(0.1), .epsilon = 0, .weight_decay = 3, .gradient_scale = number(0.5)});
  expect_values(decayed[0].first, {0.1 * (1 + 3)});
  const Updates decoupled{one(1, 2)};
  adam_update(decoupled, {.lr = number(0.1), .epsilon = 0, .weight_decay = 0.5, .decoupled = true});
  expect_values(decoupled[0].w, {0.95 - 0.1});
}

// One parameter has had 3 updates, the other none.
TEST(AdamUpdate, CountsEachParametersSteps) {
  const Updates updates{one(1, 2, 0.5, 0.25), one(1, 2)};
  updates[0].steps.fill(3);
  adam_update(updates, {.lr = number(0.1), .beta1 = 0.5, .beta2 = 0.75, .epsilon = 0});
  expect_values(updates[0].w, {1 - 0.1 * (1.25 / (1 - 0.0625)) / std::sqrt(1.1875 / (1 - 0.31640625))});
  expect_values(updates[1].w, {0.9});
  EXPECT_EQ(updates[0].steps.item(), 4);
  EXPECT_EQ(updates[1].steps.item(), 1);
}

// The sizes make full packs and rests, and a slice that begins at any address.
TEST(Updates, WriteTheNewValueToACopyTooOnCpuAndCuda) {
  for (const Target on : {Target::reference, Target::cpu, Target::cuda})
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const int64_t begin : {0, 3})
        for (const double momentum : {0.0, 0.9, 2.0}) {  // 2: Adam
          if (!sgd_update.has(on) || (on == Target::cuda && !test::why_no_cuda().empty())) continue;
          SCOPED_TRACE(testing::Message()
                       << to_string(on) << ", " << to_string(dtype) << ", " << begin << ", " << momentum);
          const Device device{on == Target::cuda ? DeviceType::cuda : DeviceType::cpu, 0};
          Updates updates;
          for (const int64_t numel : {1, 6, 4099}) {
            const auto sine = [&](double step, DType of) {
              std::vector<double> values;
              for (int64_t i = 0; i < numel + begin; ++i) values.push_back(std::sin(step * static_cast<double>(i + 1)));
              return f64({numel + begin}, values).to(of).to(device).slice(begin, numel + begin);
            };
            updates.push_back({.w = sine(0.7, DType::f32),
                               .g = sine(1.3, DType::f32),
                               .first = sine(0, DType::f32),
                               .second = sine(0, DType::f32),
                               .steps = Tensor::zeros({}, {.dtype = DType::i64, .device = device}),
                               .copy = sine(5, dtype)});
          }
          const Tensor lr = number(0.1).to(device);
          if (momentum > 1)
            adam_update.on(on)(updates, {.lr = lr});
          else
            sgd_update.on(on)(updates, {.lr = lr, .momentum = momentum});
          for (const ParameterUpdate& update : updates)
            EXPECT_EQ(update.copy.to_vector<float>(), update.w.to(dtype).to_vector<float>());
        }
}

// The updates and the norm have the bits that they have from the same gradients in f32.
TEST(CudaUpdates, ReadGradientsInBf16) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  constexpr Device kGpu{DeviceType::cuda, 0};
  const Tensor lr = number(0.1).to(kGpu);
  const std::function<void(const Updates&)> rules[] = {
      [&](const Updates& updates) { sgd_update(updates, {.lr = lr, .momentum = 0.9, .weight_decay = 0.5}); },
      [&](const Updates& updates) { adam_update(updates, {.lr = lr}); },
      [&](const Updates& updates) { momentum_direction(updates, {.momentum = 0.9}); }};
  for (const auto& rule : rules)
    for (const int64_t begin : {0, 3}) {
      std::vector<Values> found[2];
      for (const bool narrow : {false, true}) {
        Updates updates;
        for (const int64_t numel : {1, 6, 4099}) {
          const auto sine = [&](double step) {
            std::vector<double> values;
            for (int64_t i = 0; i < numel + begin; ++i) values.push_back(std::sin(step * static_cast<double>(i + 1)));
            return f64({numel + begin}, values).to(DType::f32).to(kGpu).slice(begin, numel + begin);
          };
          const Tensor g = sine(1.3).to(DType::bf16);
          updates.push_back({.w = sine(0.7),
                             .g = narrow ? g : g.to(DType::f32),
                             .first = sine(2),
                             .second = sine(0),
                             .steps = Tensor::zeros({}, {.dtype = DType::i64, .device = kGpu})});
        }
        Tensor squares = Tensor::empty({}, {.dtype = DType::f64, .device = kGpu});
        squared_norm(updates, squares);
        found[narrow].push_back(squares.to_vector<double>());
        rule(updates);
        for (const ParameterUpdate& update : updates)
          for (const Tensor& tensor : {update.w, update.first, update.second})
            found[narrow].push_back(tensor.to_vector<double>());
      }
      EXPECT_EQ(found[true], found[false]) << begin;
    }
}

TEST(AverageUpdate, MovesTheAverage) {
  const Updates updates{one(3, 0, 1)};
  average_update(updates, number(0.9));
  expect_values(updates[0].first, {1.2});
}

TEST(AverageUpdate, DoesNotMoveIfTheParameterIsTheAverageOnCpuAndCuda) {
  for (const Target on : {Target::reference, Target::cpu, Target::cuda}) {
    if (!average_update.has(on) || (on == Target::cuda && !test::why_no_cuda().empty())) continue;
    const Device device{on == Target::cuda ? DeviceType::cuda : DeviceType::cpu, 0};
    Values values;
    for (int i = 0; i < 67; ++i) values.push_back(std::sin(i + 1));
    const Tensor w = f64({67}, values).to(DType::f32).to(device);
    for (const double d : {0.9999, 0.6}) {
      const Updates updates{{.w = w, .g = {}, .first = w.clone(), .second = {}}};
      const Tensor decay = number(d).to(device);
      for (int i = 0; i < 1000; ++i) average_update.on(on)(updates, decay);
      EXPECT_EQ(updates[0].first.to_vector<float>(), w.to_vector<float>()) << to_string(on) << ", decay " << d;
    }
  }
}

TEST(SquaredNorm, AddsOverAllParameters) {
  const Updates updates{one(0, 1), one(0, 2), one(0, -2)};
  Tensor sum = empty_f64({});
  squared_norm(updates, sum);
  expect_values(sum, {9});
}

TEST(ClipScale, BringsTheNormToItsBound) {
  Tensor scale = empty_f64({});
  clip_scale(number(9), 1.5, scale);
  expect_values(scale, {1.5 / (3 + 1e-6)});
  clip_scale(number(9), 4, scale);
  expect_values(scale, {1});
}

}  // namespace
}  // namespace tern::kernels
