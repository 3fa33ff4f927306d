#include <gtest/gtest.h>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

// Rounding hides finite differences. So the table of gradchecks does not contain this operation.
TEST(Convert, RoundsForwardAndReturnsTheGradientInTheInputsDtype) {
  const auto x = Variable::leaf(Tensor::from<double>({2}, std::vector<double>{1 + 0x1p-10, -2}));
  const Variable y = convert(x, DType::bf16);
  EXPECT_EQ(y.value().dtype(), DType::bf16);
  EXPECT_EQ(y.value().to_vector<double>(), (std::vector<double>{1, -2}));
  y.backward(Tensor::from<float>({2}, std::vector<float>{0.5f, 3}).to(DType::bf16));
  EXPECT_EQ(x.gradient().dtype(), DType::f64);
  EXPECT_EQ(x.gradient().to_vector<double>(), (std::vector<double>{0.5, 3}));
}

TEST(Convert, PassesTheSameDtypeThroughAndRefusesIntegers) {
  const auto x = Variable::leaf(Tensor::zeros({2}));
  EXPECT_EQ(convert(x, DType::f32).slot(), x.slot());
  EXPECT_EQ(message_of<Error>([&] { convert(x, DType::i64); }), "convert: f32 to i64, expected floating dtypes");
}

}  // namespace
}  // namespace tern
