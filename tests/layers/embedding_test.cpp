#include "tern/layers/embedding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern {
namespace {

const Tensor kIndices = Tensor::from<int64_t>({4}, std::vector<int64_t>{0, 2, 2, 1});
const Tensor kOffsets = Tensor::from<int64_t>({4}, std::vector<int64_t>{0, 3, 3, 4});
const Tensor kValues = Tensor::from<float>({4}, std::vector<float>{2, 10, 1, -1});
const Tensor kDense = f64({3, 4}, {2, 0, 11, 0, 0, 0, 0, 0, 0, -1, 0, 0});

std::vector<std::string> names(Module& module) {
  std::vector<std::string> found;
  for (const auto& [name, parameter] : module.parameters()) found.push_back(name);
  return found;
}

TEST(EmbeddingBag, NamesItsParameters) {
  EmbeddingBag bag({.columns = 4, .features = 2}), bare({.columns = 4, .features = 2, .bias = false});
  bag.initialize(1);
  EXPECT_EQ(names(bag), (std::vector<std::string>{"weight", "bias"}));
  EXPECT_EQ(bag.weight.value().shape(), (Shape{4, 2}));
  EXPECT_EQ(bag.bias->value().shape(), Shape{2});
  EXPECT_EQ(names(bare), (std::vector<std::string>{"weight"}));
}

TEST(EmbeddingBag, IsTheProductWithTheDenseMatrix) {
  for (const bool bias : {false, true}) {
    EmbeddingBag bag({.columns = 4, .features = 2, .bias = bias});
    bag.initialize(1, DType::f64);
    const auto weight = Variable::leaf(bag.weight.value().clone());
    const Variable product = matmul(kDense, weight);
    const Variable expected = bias ? product + Variable(bag.bias->value()) : product;
    const Variable y = bag(kIndices, kOffsets, kValues);
    EXPECT_EQ(y.shape(), (Shape{3, 2}));
    expect_values(y.value(), expected.value().to_vector<double>());
    sum(y * y).backward();
    sum(expected * expected).backward();
    expect_values(bag.weight.gradient(), weight.gradient().to_vector<double>());
    if (bias) {
      const auto dy = scale(expected, 2).value().to_vector<double>();
      expect_values(bag.bias->gradient(), {dy[0] + dy[2] + dy[4], dy[1] + dy[3] + dy[5]});
    }
  }
}

TEST(EmbeddingBag, CountsWordsWithoutValues) {
  EmbeddingBag bag({.columns = 3, .features = 1, .bias = false});
  bag.initialize(1);
  bag.weight.set_value(Tensor::from<float>({3, 1}, std::vector<float>{1, 10, 100}));
  int seen = 0;
  bag.on_output([&](const Variable&) { ++seen; });
  expect_values(bag(kIndices, kOffsets).value(), {201, 0, 10});
  EXPECT_EQ(seen, 1);
}

TEST(EmbeddingBag, StartsAsALinearOfAsManyInputs) {
  EmbeddingBag bag({.columns = 400, .features = 50});
  bag.initialize(7);
  for (const Parameter* parameter : {&bag.weight, bag.bias}) {
    double largest = 0;
    for (const float value : parameter->value().to_vector<float>())
      largest = std::max<double>(largest, std::abs(value));
    EXPECT_LE(largest, 0.05);  // 1/√400
    EXPECT_GT(largest, 0.045);
  }
}

TEST(EmbeddingBag, NamesAnIndexBeyondItsColumns) {
  EmbeddingBag bag({.columns = 2, .features = 1});
  EXPECT_EQ(message_of<Error>([&] { bag(kIndices, kOffsets); }),
            "model: 'weight' has no value yet; call initialize(seed) on the model before its first forward");
  bag.initialize(1);
  EXPECT_EQ(message_of<Error>([&] { bag(kIndices, kOffsets); }),
            "embedding_bag: element 1 has index 2, expected 0 to 1 for 2 columns");
}

}  // namespace
}  // namespace tern
