#include <gtest/gtest.h>

#include "tern/autograd/functional.h"
#include "tern/autograd/operation.h"
#include "tern/autograd/parameter.h"
#include "tern/core/error.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

Tensor values(std::vector<float> elements) {
  return Tensor::from<float>({static_cast<int64_t>(elements.size())}, elements);
}

int64_t bytes_in_use() { return device_backend({}).statistics().in_use; }

TEST(Tape, AddsWhereAValueFansOut) {
  const auto x = Variable::leaf(values({2, 3}));
  const Variable y = x * x + x;
  sum(y + y).backward();
  EXPECT_EQ(x.gradient().to_vector<float>(), (std::vector<float>{10, 14}));
}

TEST(Tape, GivesEveryLeafAGradientOfItsOwn) {
  const auto a = Variable::leaf(values({1, 2})), b = Variable::leaf(values({3, 4}));
  const Tensor seed = values({1, 1});
  (a + b).backward(seed);
  a.gradient().fill(7);
  EXPECT_EQ(b.gradient().to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(seed.to_vector<float>(), (std::vector<float>{1, 1}));
}

TEST(Tape, SumsOverBackwardsUntilZeroed) {
  Parameter p;
  p.set_value(values({1, 2}));
  sum(scale(p.variable(), 3)).backward();
  sum(scale(p.variable(), 4)).backward();
  EXPECT_EQ(p.gradient().to_vector<float>(), (std::vector<float>{7, 7}));
  p.zero_gradient();
  EXPECT_FALSE(p.gradient().defined());
  sum(scale(p.variable(), 5)).backward();
  EXPECT_EQ(p.gradient().to_vector<float>(), (std::vector<float>{5, 5}));
}

TEST(Tape, TellsOfAGradientOnceCompleteAndBeforeTheEnd) {
  Parameter first, last;
  first.set_value(values({2}));
  last.set_value(values({5}));
  std::vector<std::pair<char, float>> order;
  first.on_gradient_ready([&] { order.emplace_back('f', first.gradient().data<float>()[0]); });
  last.on_gradient_ready([&] {
    order.emplace_back('l', last.gradient().data<float>()[0]);
    EXPECT_FALSE(first.gradient().defined()) << "no gradient of the first parameter yet: exchanges overlap";
  });
  const Variable x = first.variable();
  const Variable y = (x * x + x) * last.variable();
  sum(y).backward();
  EXPECT_EQ(order, (std::vector<std::pair<char, float>>{{'l', 6}, {'f', 25}}));
}

TEST(Tape, StandsAHundredThousandOperationsDeep) {
  const auto x = Variable::leaf(values({1}));
  Variable y = x;
  for (int i = 0; i < 100'000; ++i) y = scale(y, 1);
  y.backward();
  EXPECT_EQ(x.gradient().item(), 1);
  Variable unused = x;
  for (int i = 0; i < 100'000; ++i) unused = unused + x;
  unused = {};
}

/// y = x. The backward notes how many bytes all tensors hold.
struct Probe {
  std::vector<int64_t>* in_use;
  Tensor forward(const Tensor& x) const { return x; }
  Gradients backward(const Tensor& dy, const Needs&) const {
    in_use->push_back(bytes_in_use());
    return {dy};
  }
};

TEST(Tape, FreesWhatWasSavedAsItGoes) {
  const int64_t before = bytes_in_use();
  std::vector<int64_t> in_use;
  {
    const auto x = Variable::leaf(Tensor::full({1 << 16}, 1));
    Variable y = x;
    for (int i = 0; i < 4; ++i) y = apply(Probe{&in_use}, sigmoid(y));
    y = sum(y);
    y.backward();
    ASSERT_EQ(in_use.size(), 4u);
    for (size_t i = 1; i < in_use.size(); ++i) EXPECT_LE(in_use[i], in_use[i - 1] - (int64_t{4} << 16));
  }
  EXPECT_EQ(bytes_in_use(), before);
}

TEST(Tape, RecordsNothingUnderNoGradient) {
  const auto x = Variable::leaf(values({1}));
  {
    NoGradient guard;
    EXPECT_FALSE((x * x).requires_gradient());
    { NoGradient nested; }
    EXPECT_FALSE(gradient_enabled());
  }
  EXPECT_TRUE((x * x).requires_gradient());
}

TEST(Tape, LeavesConstantsAlone) {
  const Variable constant(values({3}));
  const auto x = Variable::leaf(values({2}));
  (constant * x).backward();
  EXPECT_EQ(x.gradient().item(), 3);
  EXPECT_FALSE(constant.requires_gradient());
}

TEST(Tape, BringsGradientsInTheFormatOfTheValue) {
  const auto x = Variable::leaf(Tensor::full({1, 2, 1, 2}, 1, {.format = MemoryFormat::channels_last}));
  const Tensor dy = Tensor::from<float>({1, 2, 1, 2}, std::vector<float>{1, 2, 3, 4});
  relu(x).backward(dy);
  EXPECT_EQ(x.gradient().to_vector<float>(), dy.to_vector<float>());
}

TEST(ReluGradient, MeetsAGradientInAnotherFormat) {
  const Tensor y = Tensor::from<float>({1, 2, 1, 2}, std::vector<float>{1, 0, 0, 4});
  const Tensor dy = Tensor::from<float>({1, 2, 1, 2}, std::vector<float>{5, 6, 7, 8});
  for (const auto format : {MemoryFormat::row_major, MemoryFormat::channels_last}) {
    for (const auto other : {MemoryFormat::row_major, MemoryFormat::channels_last}) {
      const Tensor dx = relu_gradient(y.to(format), dy.to(other));
      EXPECT_EQ(dx.format(), format);
      EXPECT_EQ(dx.to_vector<float>(), (std::vector<float>{5, 0, 0, 8}));
    }
  }
}

TEST(ReluGradient, WritesOnlyIntoWhatNobodyElseHolds) {
  const Tensor y = Tensor::from<float>({2}, std::vector<float>{1, 0});
  const Tensor dy = Tensor::from<float>({2}, std::vector<float>{5, 6});
  EXPECT_EQ(relu_gradient(y, dy).to_vector<float>(), (std::vector<float>{5, 0}));
  EXPECT_EQ(dy.to_vector<float>(), (std::vector<float>{5, 6}));
  Tensor given = dy.clone();
  const float* const place = given.data<float>();
  EXPECT_EQ(relu_gradient(y, std::move(given)).data<float>(), place);
}

TEST(Tape, RefusesGradientsOfAnotherShapeOrDtype) {
  struct Wrong {
    Tensor gradient;
    Tensor forward(const Tensor& x) const { return x; }
    Gradients backward(const Tensor&, const Needs&) const { return {gradient}; }
  };
  const auto x = Variable::leaf(Tensor::full({2, 3}, 1));
  EXPECT_EQ(message_of<Error>([&] {
              apply(Wrong{Tensor::full({1, 1}, 1)}, x).backward(Tensor::full({2, 3}, 1));
            }),
            "backward: an operation returned a gradient of f32 [1, 1] for input 0, which is f32 [2, 3]");
  const Tensor f64 = Tensor::full({2, 3}, 1, {.dtype = DType::f64});
  EXPECT_EQ(message_of<Error>([&] {
              apply(Wrong{f64}, x).backward(Tensor::full({2, 3}, 1));
            }),
            "backward: an operation returned a gradient of f64 [2, 3] for input 0, which is f32 [2, 3]");
}

TEST(Tape, WidensNarrowGradients) {
  struct Narrow {
    Tensor forward(const Tensor& x) const { return x.clone(); }
    Gradients backward(const Tensor& dy, const Needs&) const { return {dy.to(DType::bf16)}; }
  };
  const Tensor dy = values({1.0F + 0x1p-8F, 3}), rounded = dy.to(DType::bf16);
  const auto x = Variable::leaf(values({5, 7}));
  apply(Narrow{}, x).backward(dy);
  EXPECT_TRUE(x.slot()->narrow.defined()) << "until somebody reads it";
  EXPECT_EQ(x.gradient().dtype(), DType::f32);
  EXPECT_EQ(x.gradient().to_vector<float>(), rounded.to_vector<float>());
  EXPECT_FALSE(x.slot()->narrow.defined());
  const auto both = Variable::leaf(values({5, 7}));
  sum(apply(Narrow{}, both) + apply(Narrow{}, both)).backward();
  apply(Narrow{}, scale(both, 2)).backward(dy);
  EXPECT_EQ(both.gradient().to_vector<float>(), (std::vector<float>{2 + 2, 2 + 6})) << "added in f32";
  x.slot()->gradient = {};
  apply(Narrow{}, x).backward(dy);
  relu(x).backward(dy);
  EXPECT_EQ(x.gradient().to_vector<float>(), (std::vector<float>{2.0F + 0x1p-8F, 6}));
}

TEST(Tape, RefusesMoreInputsThanNeedsCanTell) {
  struct First {
    Tensor forward(std::span<const Tensor> inputs) const { return inputs.front().clone(); }
    Gradients backward(const Tensor& dy, const Needs&) const { return {dy}; }
  };
  const std::vector<Variable> leaves(64, Variable::leaf(values({1})));
  std::vector<Variable> more = leaves;
  more.push_back(values({1}));
  EXPECT_TRUE(apply_list(First{}, leaves).requires_gradient());
  EXPECT_EQ(message_of<Error>([&] { apply_list(First{}, more); }),
            "gradients of an operation over 65 inputs, expected at most 64");
  EXPECT_EQ(apply_list(First{}, std::vector<Variable>(65, values({1}))).shape(), Shape{1}) << "no gradient, no limit";
}

TEST(Tape, RefusesWhatHasNoGradient) {
  const auto x = Variable::leaf(values({1, 2}));
  EXPECT_EQ(message_of<Error>([&] { x.backward(); }),
            "backward: value of shape [2], expected one element; pass a gradient");
  EXPECT_EQ(message_of<Error>([&] { x.backward(values({1})); }),
            "backward: gradient of shape [1] for a value of shape [2]");
  EXPECT_EQ(message_of<Error>([&] { x.backward(Tensor::full({2}, 1, {DType::f64})); }),
            "backward: gradient of f64 for a value of f32");
  EXPECT_EQ(message_of<Error>([] { Variable(values({1})).backward(); }),
            "backward: nothing below this value requires a gradient");
  EXPECT_EQ(message_of<Error>([] { Variable(values({1})).gradient(); }),
            "gradient: this value is a constant, expected one that requires a gradient");
}

TEST(Tape, RefusesToRunAFreedGraphAgain) {
  const auto x = Variable::leaf(values({2}));
  const Variable y = x * x, z = scale(y, 3);
  z.backward();
  const std::string freed = "backward: the graph was freed by an earlier backward; run the forward again";
  EXPECT_EQ(message_of<Error>([&] { z.backward(); }), freed);
  EXPECT_EQ(message_of<Error>([&] { (x + y).backward(); }), freed);
  EXPECT_EQ(x.gradient().item(), 12);
  (x * x).backward();
  EXPECT_EQ(x.gradient().item(), 16) << "the refused backward left nothing pending";
}

/// An operation whose backward fails.
struct Failing {
  Tensor forward(const Tensor& x) const { return x; }
  Gradients backward(const Tensor&, const Needs&) const { throw Error("failing: on purpose"); }
};

TEST(Tape, WorksAgainAfterAnOperationThrew) {
  const auto x = Variable::leaf(values({2}));
  EXPECT_EQ(message_of<Error>([&] { (apply(Failing{}, x) * x).backward(); }), "failing: on purpose");
  const auto before = x.gradient().defined() ? x.gradient().item() : 0;
  scale(x, 5).backward();
  EXPECT_EQ(x.gradient().item(), before + 5);
}

}  // namespace
}  // namespace tern
