#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tern/autograd/functional.h"
#include "tests/support/values.h"

namespace tern {
namespace {

const Tensor kLogits = f64({2, 3}, {-2.5, 0.3, 1.7, -0.1, 4, -6}),
             kTargetValues = f64({2, 3}, {0, 1, 0.25, 0.9, 1, 0.5});

// Of the definition, computed in Python's doubles.
constexpr double kLoss = 0.9718422135460756;
const Values kGradient{0.01264303000354059,  -0.07092624719805683,  0.0992557891527442,
                       -0.07082986457982333, -0.002997701660348592, -0.0829212294738942};

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
