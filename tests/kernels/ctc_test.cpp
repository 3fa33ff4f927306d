#include "tern/kernels/ctc.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/cuda.h"
#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern::kernels {
namespace {

constexpr int64_t kPathFrames = 5, kPathClasses = 3;

Tensor numbers(const std::vector<int64_t>& values) { return Tensor::from({std::ssize(values)}, values); }

/// Targets for one sequence of kPathFrames frames. The blank is class 0.
CtcTargets targets_of(const std::vector<int64_t>& labels) {
  return {.labels = numbers(labels).reshape({1, std::ssize(labels)}),
          .input_lengths = numbers({kPathFrames}),
          .label_lengths = numbers({std::ssize(labels)})};
}

/// A path without its blanks, and with equal neighbours merged.
std::vector<int64_t> labels_of(const std::vector<int64_t>& path) {
  std::vector<int64_t> labels;
  for (size_t t = 0; t < path.size(); ++t)
    if (path[t] != 0 && (t == 0 || path[t] != path[t - 1])) labels.push_back(path[t]);
  return labels;
}

struct Sums {
  double all = 0;
  std::vector<double> through = std::vector<double>(kPathFrames * kPathClasses);  ///< [frame][class]
};
/// The definition: goes through all paths, and adds up those that become `labels`.
Sums sums_over_paths(const std::vector<double>& log_probabilities, const std::vector<int64_t>& labels) {
  Sums sums;
  const auto count = static_cast<int64_t>(std::pow(kPathClasses, kPathFrames));
  for (int64_t number = 0; number < count; ++number) {
    std::vector<int64_t> path;
    double probability = 1;
    for (int64_t t = 0, rest = number; t < kPathFrames; ++t, rest /= kPathClasses) {
      path.push_back(rest % kPathClasses);
      probability *= std::exp(log_probabilities[static_cast<size_t>(t * kPathClasses + rest % kPathClasses)]);
    }
    if (labels_of(path) != labels) continue;
    sums.all += probability;
    for (size_t t = 0; t < path.size(); ++t)
      sums.through[t * kPathClasses + static_cast<size_t>(path[t])] += probability;
  }
  return sums;
}

const Values kLogProbabilities{-0.3, -1.7, -2.4, -1.1, -0.8, -1.5, -2.2, -0.9,
                               -0.7, -0.4, -3.1, -1.3, -0.6, -1.9, -1.2};

class Ctc : public testing::TestWithParam<Target> {
  void SetUp() override {
    if (!ctc_loss.has(GetParam())) GTEST_SKIP() << "this build has no kernels for " << to_string(GetParam());
  }

 protected:
  void run(const Tensor& x, const CtcTargets& targets) {
    losses = Tensor::empty({x.size(1)});
    shares = Tensor::empty(x.shape());
    ctc_loss.on(GetParam())(x, targets, losses, shares);
  }
  Tensor losses, shares;
};

TEST_P(Ctc, IsTheSumOverAllPaths) {
  const Tensor x = f64({kPathFrames, 1, kPathClasses}, kLogProbabilities).to(DType::f32);
  for (const std::vector<int64_t>& labels :
       {std::vector<int64_t>{}, {1}, {1, 2}, {2, 2}, {1, 1, 1}, {1, 2, 1, 2, 1}, {2, 1, 1}}) {
    SCOPED_TRACE(labels.size());
    run(x, targets_of(labels));
    const Sums sums = sums_over_paths(kLogProbabilities, labels);
    ASSERT_GT(sums.all, 0);
    expect_values(losses, {-std::log(sums.all)}, 1e-5);
    Values expected;
    for (const double part : sums.through) expected.push_back(part / sums.all);
    expect_values(shares, expected, 1e-5);
  }
}

TEST_P(Ctc, IsInfiniteWithoutAPath) {
  CtcTargets targets = targets_of({1, 1, 2, 2});  // needs a blank in each pair, so 6 frames
  run(f64({kPathFrames, 1, kPathClasses}, kLogProbabilities).to(DType::f32), targets);
  EXPECT_EQ(losses.item(), std::numeric_limits<float>::infinity());
  for (const double share : shares.to_vector<double>()) EXPECT_TRUE(std::isnan(share));
  targets.zero_infinity = true;
  run(f64({kPathFrames, 1, kPathClasses}, kLogProbabilities).to(DType::f32), targets);
  EXPECT_EQ(losses.item(), 0);
  expect_values(shares, Values(kPathFrames * kPathClasses, 0));
}

TEST_P(Ctc, IsPreciseForLongSequences) {
  // One frame in a thousand is likely to be the label, so -log p is above 700: e^-700 is no float.
  const int64_t frames = 1000;
  Tensor x = Tensor::full({frames, 1, 2}, -0.7);
  run(x, {.labels = numbers({1}).reshape({1, 1}), .input_lengths = numbers({frames}), .label_lengths = numbers({1})});
  // Each of the frames·(frames + 1)/2 spans of the label has the same probability.
  EXPECT_NEAR(losses.item(), 700 - std::log(500.0 * 1001), 1e-3);
  double sum = 0;
  for (const double share : shares.to_vector<double>()) sum += share;
  EXPECT_NEAR(sum, frames, 1e-2);
}

TEST_P(Ctc, PassesNaN) {
  Tensor x = Tensor::full({kPathFrames, 1, kPathClasses}, -1);
  for (float& value : x.slice(2, 3).span<float>()) value = std::numeric_limits<float>::quiet_NaN();
  run(x, targets_of({1, 2}));
  EXPECT_TRUE(std::isnan(losses.item()));
  // No path has the second label in the first frame.
  Tensor first = Tensor::full({kPathFrames, 1, kPathClasses}, -1);
  first.data<float>()[2] = std::numeric_limits<float>::quiet_NaN();
  run(first, targets_of({1, 2}));
  EXPECT_TRUE(std::isnan(losses.item()));
}

TEST_P(Ctc, NamesWhatIsOutOfRange) {
  const Tensor x = Tensor::full({kPathFrames, 1, kPathClasses}, -1);
  const auto message = [&](const CtcTargets& targets) { return message_of<Error>([&] { run(x, targets); }); };
  EXPECT_EQ(message(targets_of({1, 3})), "ctc_loss: label 1 of sequence 0 is 3, expected 0 to 2 for 3 classes");
  EXPECT_EQ(message(targets_of({0})), "ctc_loss: label 0 of sequence 0 is 0, the blank, expected another class");
  CtcTargets targets = targets_of({1, 2});
  targets.label_lengths = numbers({3});
  EXPECT_EQ(message(targets), "ctc_loss: sequence 0 has label length 3, expected 0 to 2");
  targets.label_lengths = numbers({2, 2});
  EXPECT_EQ(message(targets), "ctc_loss: label lengths i64 of shape [2], expected i64 [1]");
  targets = targets_of({1, 2});
  targets.input_lengths = numbers({6});
  EXPECT_EQ(message(targets), "ctc_loss: sequence 0 has input length 6, expected 0 to 5");
  targets = targets_of({1, 2});
  targets.blank = 3;
  EXPECT_EQ(message(targets), "ctc_loss: blank 3, expected 0 to 2 for 3 classes");
}

TEST(CtcShapes, RefuseCpuAndCudaTogether) {
  if (const auto reason = test::why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
  const Tensor x = Tensor::full({kPathFrames, 1, kPathClasses}, -1);
  CtcTargets targets = targets_of({1, 2});
  targets.input_lengths = targets.input_lengths.to(Device{DeviceType::cuda, 0});
  EXPECT_EQ(
      message_of<Error>([&] { check_ctc_shapes(x, targets); }),
      "ctc_loss: labels on cpu, input lengths on cuda:0, label lengths on cpu, log-probabilities on cpu, expected "
      "one device");
}

INSTANTIATE_TEST_SUITE_P(Targets, Ctc, testing::Values(Target::reference, Target::cpu),
                         [](const auto& parameter) { return to_string(parameter.param); });

}  // namespace
}  // namespace tern::kernels
