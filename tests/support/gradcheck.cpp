#include "tests/support/gradcheck.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tern/core/random.h"

namespace tern::test {
namespace {

constexpr double kStep = 1e-6;
constexpr double kTolerance = 1e-7;
constexpr uint32_t kProjection = 1000;

double projected(const Function& f, const std::vector<Tensor>& inputs, const std::vector<double>& projection) {
  const std::vector<Variable> constants(inputs.begin(), inputs.end());
  const std::vector<double> y = f(constants).value().to_vector<double>();
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) sum += projection[i] * y[i];
  return sum;
}

std::vector<double> central_differences(const Function& f, const std::vector<Tensor>& inputs, size_t which,
                                        const std::vector<double>& projection) {
  std::vector<Tensor> moved = inputs;
  moved[which] = inputs[which].clone();
  Tensor differences = Tensor::empty_like(inputs[which]);
  const auto elements = moved[which].span<double>();
  for (size_t i = 0; i < elements.size(); ++i) {
    const double x = elements[i];
    elements[i] = x + kStep;
    const double above = projected(f, moved, projection);
    elements[i] = x - kStep;
    const double below = projected(f, moved, projection);
    elements[i] = x;
    differences.data<double>()[i] = (above - below) / (2 * kStep);
  }
  return differences.to_vector<double>();
}

}  // namespace

Tensor random_tensor(const Shape& shape, uint32_t number, MemoryFormat format) {
  const RandomStream random({.seed = 1, .purpose = Purpose::test, .tensor = number});
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) {
    const double draw = random.normal(i);
    values[i] = draw + std::copysign(0.1, draw);
  }
  return Tensor::from(shape, values).to(format);
}

void expect_gradients(const Function& f, const std::vector<Tensor>& inputs) {
  std::vector<Variable> leaves;
  for (const Tensor& input : inputs) leaves.push_back(Variable::leaf(input));
  const Variable y = f(leaves);
  const Tensor projection = random_tensor(y.shape(), kProjection);
  y.backward(projection);
  for (size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_TRUE(leaves[i].gradient().defined()) << "input " << i;
    ASSERT_EQ(leaves[i].gradient().shape(), inputs[i].shape()) << "input " << i;
    const std::vector<double> expected = central_differences(f, inputs, i, projection.to_vector<double>());
    const std::vector<double> found = leaves[i].gradient().to_vector<double>();
    double largest = 1;
    for (double value : expected) largest = std::max(largest, std::abs(value));
    for (size_t e = 0; e < expected.size(); ++e)
      ASSERT_NEAR(found[e], expected[e], kTolerance * largest) << "input " << i << ", element " << e;
  }
}

void expect_gradients_in_every_format(const Function& f, const std::vector<Tensor>& inputs) {
  expect_gradients(f, inputs);
  const auto plain = f({inputs.begin(), inputs.end()}).value().to_vector<double>();
  for (const int step : {1, 2}) {
    SCOPED_TRACE(step == 1 ? "channels_last" : "every other input channels_last");
    std::vector<Tensor> turned;
    int images = 0;
    for (const Tensor& input : inputs)
      turned.push_back(input.rank() == 4 && images++ % step == 0 ? input.to(MemoryFormat::channels_last) : input);
    if (images < step) continue;
    expect_gradients(f, turned);
    const auto other = f({turned.begin(), turned.end()}).value().to_vector<double>();
    ASSERT_EQ(plain.size(), other.size());
    for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(plain[i], other[i], 1e-12) << "element " << i;
  }
}

}  // namespace tern::test
