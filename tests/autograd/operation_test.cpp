#include "tern/autograd/operation.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "tern/autograd/functional.h"
#include "tern/autograd/parameter.h"
#include "tern/kernels/elementwise.h"
#include "tern/optim/sgd.h"
#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern {
namespace {

Tensor vector_of(std::vector<float> elements) {
  return Tensor::from<float>({static_cast<int64_t>(elements.size())}, elements);
}
std::vector<float> elements(const Tensor& x) { return x.to_vector<float>(); }

/// The square and the cube of x.
struct Powers {
  Saved x;
  std::vector<bool>* defined = nullptr;

  std::array<Tensor, 2> forward(const Tensor& input) {
    Tensor square = Tensor::empty_like(input), cube = Tensor::empty_like(input);
    kernels::multiply(input, input, square);
    kernels::multiply(square, input, cube);
    x = input;
    return {square, cube};
  }
  Gradients backward(const Gradients& dys, const Needs&) const {
    if (defined != nullptr) *defined = {dys[0].defined(), dys[1].defined()};
    Tensor dx = Tensor::zeros_like(x), part = Tensor::empty_like(x);
    if (dys[0].defined()) {  // 2x
      kernels::multiply(dys[0], x, part);
      kernels::scale(part, 2, dx);
    }
    if (dys[1].defined()) {  // 3x²
      kernels::multiply(dys[1], x, part);
      kernels::multiply(part, x, part);
      kernels::scale(part, 3, part);
      kernels::accumulate(part, dx);
    }
    return {dx};
  }
};

TEST(OperationOfSeveralOutputs, GetsTheGradientsOfAll) {
  const auto x = Variable::leaf(vector_of({2, 3}));
  std::vector<bool> defined;
  const auto [square, cube] = apply(Powers{.x = {}, .defined = &defined}, x);
  EXPECT_EQ(elements(square.value()), (std::vector<float>{4, 9}));
  EXPECT_EQ(elements(cube.value()), (std::vector<float>{8, 27}));
  sum(square * cube).backward();  // x⁵
  EXPECT_EQ(elements(x.gradient()), (std::vector<float>{80, 405}));
  EXPECT_EQ(defined, (std::vector<bool>{true, true}));
}

TEST(OperationOfSeveralOutputs, GetsNoGradientOfAnUnusedOne) {
  const auto x = Variable::leaf(vector_of({2, 3}));
  std::vector<bool> defined;
  const auto powers = apply(Powers{.x = {}, .defined = &defined}, x);
  sum(powers[1]).backward();
  EXPECT_EQ(elements(x.gradient()), (std::vector<float>{12, 27}));
  EXPECT_EQ(defined, (std::vector<bool>{false, true}));
}

/// The first output reaches the loss by a longer way than the second, and twice.
TEST(OperationOfSeveralOutputs, WaitsForTheGradientsOfAllOutputs) {
  const auto x = Variable::leaf(vector_of({2}));
  const auto [square, cube] = apply(Powers{}, x);
  Variable longer = square;
  for (int i = 0; i < 5; ++i) longer = scale(longer, 1);
  sum(longer + square + cube).backward();  // 2x² + x³
  EXPECT_EQ(elements(x.gradient()), (std::vector<float>{8 + 12}));
}

TEST(OperationOfSeveralOutputs, RunsBackwardOnce) {
  const auto x = Variable::leaf(vector_of({2}));
  const auto [square, cube] = apply(Powers{}, x);
  sum(square).backward();
  const Variable other = sum(cube);
  EXPECT_EQ(message_of<Error>([&] { other.backward(); }),
            "backward: the graph was freed by an earlier backward; run the forward again");
}

TEST(OperationOfSeveralOutputs, IsConstantWithoutANeedForGradients) {
  const auto powers = apply(Powers{}, Variable(vector_of({2})));
  EXPECT_FALSE(powers[0].requires_gradient());
  EXPECT_EQ(elements(powers[1].value()), (std::vector<float>{8}));
}

/// Rows of x, as many as it has.
struct Unstack {
  Shape shape = {};

  std::vector<Tensor> forward(const Tensor& x) {
    shape = x.shape();
    std::vector<Tensor> rows;
    for (int64_t i = 0; i < x.size(0); ++i) rows.push_back(x.slice(i, i + 1).clone());
    return rows;
  }
  Gradients backward(const Gradients& dys, const Needs&) const {
    Tensor dx = Tensor::zeros(shape);
    for (size_t i = 0; i < dys.size(); ++i)
      if (dys[i].defined()) dx.slice(static_cast<int64_t>(i), static_cast<int64_t>(i) + 1).copy_from(dys[i]);
    return {dx};
  }
};

TEST(OperationOfSeveralOutputs, MayHaveAnyNumber) {
  const auto x = Variable::leaf(Tensor::from<float>({3, 1}, std::vector<float>{1, 2, 3}));
  const std::vector<Variable> rows = apply(Unstack{}, x);
  ASSERT_EQ(rows.size(), 3u);
  sum(rows[2] * rows[2] + rows[0]).backward();
  EXPECT_EQ(elements(x.gradient()), (std::vector<float>{1, 0, 6}));
}

/// Positions beside values: no gradient flows into them.
struct WithPositions {
  std::vector<Tensor> forward(const Tensor& x) {
    return {x.clone(), Tensor::from<int64_t>({1}, std::vector<int64_t>{7})};
  }
  Gradients backward(const Gradients& dys, const Needs&) const { return {dys[0]}; }
};

TEST(OperationOfSeveralOutputs, HasNoGradientsOfIntegers) {
  const auto outputs = apply(WithPositions{}, Variable::leaf(vector_of({2})));
  EXPECT_TRUE(outputs[0].requires_gradient());
  EXPECT_FALSE(outputs[1].requires_gradient());
}

/// y = x. Throws in its first backward.
struct ThrowsOnce {
  bool* threw;

  Tensor forward(const Tensor& x) { return x.clone(); }
  Gradients backward(const Tensor& dy, const Needs&) const {
    if (!std::exchange(*threw, true)) throw Error("once");
    return {dy};
  }
};

/// The gradient of `square`, or of u, has arrived when the other way throws. The next backward does not add to it.
TEST(Backward, ThatThrewLeavesNothingToTheNext) {
  bool threw = false;
  const auto x = Variable::leaf(vector_of({2}));
  const auto [square, cube] = apply(Powers{}, x);
  const Variable failing = sum(square + apply(ThrowsOnce{&threw}, cube));
  EXPECT_EQ(message_of<Error>([&] { failing.backward(); }), "once");
  const auto v = Variable::leaf(vector_of({2}));
  const Variable u = scale(v, 1);
  threw = false;
  const Variable other = sum(apply(ThrowsOnce{&threw}, u) + scale(u, 1));
  EXPECT_EQ(message_of<Error>([&] { other.backward(); }), "once");
  sum(scale(u, 1)).backward();
  EXPECT_EQ(elements(v.gradient()), (std::vector<float>{1}));
  sum(cube).backward();
  EXPECT_EQ(elements(x.gradient()), (std::vector<float>{12})) << "3x², without 2x";
}

/// What backward says after `change` has written to the factor w of x · w.
template <class Change>
std::string after_writing(const Change& change) {
  Parameter w;
  w.set_value(vector_of({2, 3}));
  const auto x = Variable::leaf(vector_of({5, 7}));
  const Variable y = sum(x * w.variable());
  change(w);
  return message_of<Error>([&] { y.backward(); });
}

TEST(SavedTensor, ThatIsWrittenToIsAnErrorThatNamesTheOperation) {
  const std::string sentence = "Multiply: a tensor of f32 [2], which forward saved, was written to before backward";
  EXPECT_EQ(after_writing([](Parameter&) {}), "");
  EXPECT_EQ(after_writing([](Parameter& w) { w.value().fill(1); }), sentence);
  EXPECT_EQ(after_writing([](Parameter& w) { w.value().copy_from(vector_of({0, 0})); }), sentence);
  EXPECT_EQ(after_writing([](Parameter& w) { w.value().slice(0, 1).fill(1); }), sentence) << "a view writes too";
  EXPECT_EQ(after_writing([](Parameter& w) {
              Tensor value = w.value();
              kernels::accumulate(vector_of({1, 1}), value);
            }),
            sentence);
  EXPECT_EQ(after_writing([](Parameter& w) {
              w.value().data<float>()[0] = 1;
              w.value().mark_written();
            }),
            sentence);
}

TEST(SavedTensor, SeesTheStepsOfOptimizers) {
  Parameter w;
  w.set_value(vector_of({2, 3}));
  Sgd sgd({{"w", &w}}, {.lr = 0.1});
  sum(scale(w.variable(), 2)).backward();
  const auto x = Variable::leaf(vector_of({5, 7}));
  const Variable y = sum(x * w.variable());
  sgd.step();
  EXPECT_NE(message_of<Error>([&] { y.backward(); }).find("Multiply: "), std::string::npos);
}

/// A new value is another tensor. The graph keeps the one that it saved.
TEST(SavedTensor, StaysAsItWasIfTheParameterGetsANewValue) {
  Parameter w;
  w.set_value(vector_of({2, 3}));
  const auto x = Variable::leaf(vector_of({5, 7}));
  const Variable y = sum(x * w.variable());
  w.set_value(vector_of({0, 0}));
  y.backward();
  EXPECT_EQ(elements(x.gradient()), (std::vector<float>{2, 3}));
}

TEST(SavedTensor, IsNotReadForAGradientThatNobodyNeeds) {
  Parameter w;
  w.set_value(vector_of({2, 3}));
  const Variable y = sum(Variable(vector_of({5, 7})) * w.variable());
  w.value().fill(0);
  y.backward();  // of w alone, which is the other factor
  EXPECT_EQ(elements(w.gradient()), (std::vector<float>{5, 7}));
}

TEST(SavedTensor, SeesTrainingChangeTheRunningStatistics) {
  const auto x = Variable::leaf(Tensor::from<float>({2, 1}, std::vector<float>{1, 3}));
  const BatchNormState state = {.gamma = Variable(vector_of({1})),
                                .beta = Variable(vector_of({0})),
                                .running_mean = vector_of({0}),
                                .running_variance = vector_of({1})};
  const Variable y = sum(batch_norm(x, state, {}, false));
  batch_norm(Variable(x.value()), state, {}, true);
  EXPECT_NE(message_of<Error>([&] { y.backward(); }).find("was written to before backward"), std::string::npos);
}

TEST(SavedTensor, NamesTheKernelOfAnActivation) {
  const auto x = Variable::leaf(vector_of({5, 7}));
  const Variable y = sigmoid(x);
  y.value().fill(0);
  EXPECT_EQ(message_of<Error>([&] { sum(y).backward(); }).substr(0, 9), "sigmoid: ");
}

/// 2x. Its backward adds to what other operations gave for x, and shows it in `sums`.
struct AddingDouble {
  std::vector<Values>* sums;

  Tensor forward(const Tensor& x) const {
    Tensor y = Tensor::empty_like(x);
    kernels::scale(x, 2, y);
    return y;
  }
  bool adds_to_first() const { return true; }
  Gradients backward(const Tensor& dy, const Needs&, Tensor sum) const {
    sums->push_back(sum.defined() ? sum.to_vector<double>() : Values());
    Tensor dx = Tensor::empty_like(dy);
    kernels::scale(dy, 2, dx);
    if (!sum.defined()) return {dx};
    kernels::accumulate(dx, sum);
    return {sum};
  }
};

TEST(Operation, AddsItsGradientToThatOfOthers) {
  const auto x = Variable::leaf(vector_of({1, 2}));
  std::vector<Values> sums;
  const auto doubled = [&](const Variable& value) { return apply(AddingDouble{&sums}, value); };
  const auto slope = [&](const Variable& y) {
    x.slot()->gradient = {};
    sums.clear();
    sum(y).backward();
    return elements(x.gradient());
  };
  const Variable alone = scale(x, 1), after = scale(x, 1), thrice = scale(x, 1), shared = scale(x, 1);
  EXPECT_EQ(slope(doubled(alone)), (std::vector<float>{2, 2}));
  EXPECT_EQ(sums, (std::vector<Values>{{}}));
  EXPECT_EQ(slope(doubled(after) + scale(after, 3)), (std::vector<float>{5, 5}));
  EXPECT_EQ(sums, (std::vector<Values>{{3, 3}}));
  EXPECT_EQ(slope(doubled(thrice) + (doubled(thrice) + scale(thrice, 3))), (std::vector<float>{7, 7}));
  EXPECT_EQ(sums, (std::vector<Values>{{3, 3}, {5, 5}}));
  EXPECT_EQ(slope(doubled(shared) + shared), (std::vector<float>{3, 3})) << "both have the gradient of the sum";
  EXPECT_EQ(sums, (std::vector<Values>{{}}));
  EXPECT_EQ(slope(doubled(x) + scale(x, 3)), (std::vector<float>{5, 5}));
  EXPECT_EQ(sums, (std::vector<Values>{{}})) << "a leaf keeps what it has";
}

}  // namespace
}  // namespace tern
