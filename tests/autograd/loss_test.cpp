#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tern/autograd/functional.h"
#include "tests/support/cuda.h"
#include "tests/support/values.h"

namespace tern {
namespace {

const Tensor kLogits = f64({2, 3}, {-2.5, 0.3, 1.7, -0.1, 4, -6}),
             kTargetValues = f64({2, 3}, {0, 1, 0.25, 0.9, 1, 0.5});

// Of the definition, computed in Python's doubles.
constexpr double kLoss = 0.9718422135460756;
const Values kGradient{0.01264303000354059,  -0.07092624719805683,  0.0992557891527442,
                       -0.07082986457982333, -0.002997701660348592, -0.0829212294738942};

TEST(CrossEntropy, IgnoresALabelInEveryReduction) {
  // Of the definition for the second row, computed in Python's doubles. Its label has weight 4.
  constexpr double kRow = 0.01648150605312626;
  const Values of_sum{0, 0, 0, 4 * 0.016301771337635163, 4 * -0.0163464291406625, 4 * 4.465780302763138e-05};
  Values of_mean = of_sum;
  for (double& element : of_mean) element /= 4;
  const Tensor labels = integers({-100, 1}), ignored = integers({-100, -100});
  for (const auto& row : {std::pair{DType::f64, 1e-14}, std::pair{DType::f32, 1e-6}, std::pair{DType::bf16, 1e-2}}) {
    const DType dtype = row.first;
    const double tolerance = row.second;
    SCOPED_TRACE(to_string(dtype));
    const Tensor weights = f64({3}, {2, 4, 1}).to(parameter_dtype(dtype));
    const auto expect = [&](const Tensor& of, LossReduction reduction, const Values& losses, const Values& gradient,
                            double within) {
      const auto x = Variable::leaf(kLogits.to(dtype));
      const Variable loss = cross_entropy(x, of, {.weights = weights, .ignored_label = -100, .reduction = reduction});
      EXPECT_EQ(loss.value().dtype(), weights.dtype());
      expect_values(loss.value(), losses, within);
      loss.backward(Tensor::full(loss.shape(), 1, {weights.dtype()}));
      EXPECT_EQ(x.gradient().dtype(), dtype);
      expect_values(x.gradient(), gradient, within);
    };
    expect(labels, LossReduction::mean, {kRow}, of_mean, tolerance);
    expect(labels, LossReduction::sum, {4 * kRow}, of_sum, tolerance);
    expect(labels, LossReduction::none, {0, 4 * kRow}, of_sum, tolerance);
    const Values zeros(6);
    expect(ignored, LossReduction::sum, {0}, zeros, 0);
    expect(ignored, LossReduction::none, {0, 0}, zeros, 0);
    const auto x = Variable::leaf(kLogits.to(dtype));
    const Variable nothing = cross_entropy(x, ignored, {.weights = weights, .ignored_label = -100});
    EXPECT_TRUE(std::isnan(nothing.value().item()));
    nothing.backward();
    expect_values(x.gradient(), zeros, 0);
  }
}

TEST(BinaryCrossEntropyWithLogits, HasItsGradientInEveryDType) {
  struct Row {
    DType logits, targets, loss;
    double tolerance;
  };
  for (const auto& [logits, targets, loss_dtype, tolerance] :
       {Row{DType::f64, DType::f64, DType::f64, 1e-14}, Row{DType::f32, DType::f32, DType::f32, 2e-7},
        Row{DType::bf16, DType::f32, DType::f32, 4e-3}, Row{DType::bf16, DType::bf16, DType::f32, 4e-3}}) {
    SCOPED_TRACE(to_string(logits) + " " + to_string(targets));
    const auto x = Variable::leaf(kLogits.to(logits));
    const Variable loss = binary_cross_entropy_with_logits(x, kTargetValues.to(targets));
    EXPECT_EQ(loss.value().dtype(), loss_dtype);
    EXPECT_EQ(loss.shape(), Shape{});
    expect_values(loss.value(), {kLoss}, tolerance);
    loss.backward();
    EXPECT_EQ(x.gradient().dtype(), logits);
    expect_values(x.gradient(), kGradient, tolerance);
  }
}

TEST(BinaryCrossEntropyWithLogits, TakesOneFormatBesideTheOther) {
  const Shape shape{1, 2, 1, 3};
  const auto last = MemoryFormat::channels_last;
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor row_major = kLogits.reshape(shape).to(dtype), targets = kTargetValues.reshape(shape).to(dtype);
    for (const auto& [logits, aim] : {std::pair{row_major.to(last), targets}, std::pair{row_major, targets.to(last)}}) {
      const auto x = Variable::leaf(logits);
      const Variable loss = binary_cross_entropy_with_logits(x, aim);
      EXPECT_NEAR(loss.value().item(), kLoss, 2e-7);
      loss.backward();
      expect_values(x.gradient(), kGradient, 2e-7);
    }
  }
}

// e^-20 is far below the precision of 1 + e^-20 and of sigmoid(20).
void expect_precision(const std::vector<DType>& dtypes, Device device) {
  constexpr double kCertain = 2.061153620314381e-9, kSlope = -2.0611536181902037e-9;  // log(1 + e^-20), -1/(1 + e^20)
  for (const DType dtype : dtypes)
    for (const auto reduction : {LossReduction::mean, LossReduction::sum, LossReduction::none}) {
      const TensorOptions options{dtype, device};
      const auto x = Variable::leaf(Tensor::full({1}, 20, options));
      const Variable loss = binary_cross_entropy_with_logits(x, Tensor::full({1}, 1, options), reduction);
      EXPECT_NEAR(loss.value().item(), kCertain, 1e-6 * kCertain);
      loss.backward(Tensor::full(loss.shape(), 1, options));
      EXPECT_NEAR(x.gradient().item(), kSlope, -1e-6 * kSlope);
    }
}

TEST(BinaryCrossEntropyWithLogits, IsPreciseIfThePredictionIsCertain) {
  expect_precision({DType::f64, DType::f32}, {});
}
TEST(CudaBinaryCrossEntropyWithLogits, IsPreciseIfThePredictionIsCertain) {
  if (const std::string why = test::why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  expect_precision({DType::f32}, {DeviceType::cuda, 0});
}

TEST(BinaryCrossEntropyWithLogits, PassesNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto x = Variable::leaf(Tensor::from({2}, std::vector<float>{nan, 0}).to(dtype));
    const Variable loss = binary_cross_entropy_with_logits(x, Tensor::zeros({2}, {.dtype = dtype}));
    EXPECT_TRUE(std::isnan(loss.value().item()));
    loss.backward();
    EXPECT_TRUE(std::isnan(x.gradient().to_vector<double>()[0]));
    EXPECT_EQ(x.gradient().to_vector<double>()[1], 0.25);
  }
}

}  // namespace
}  // namespace tern
