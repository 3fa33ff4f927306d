#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "tern/autograd/functional.h"
#include "tern/core/error.h"
#include "tern/optim/adam.h"
#include "tern/optim/sgd.h"
#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern {
namespace {

using Floats = std::vector<float>;

/// A parameter [4, 2] with the value row + 1 in each row.
struct Rows {
  Parameter parameter;
  Rows() { parameter.set_value(Tensor::from<float>({4, 2}, Floats{1, 1, 2, 2, 3, 3, 4, 4})); }
  std::vector<NamedParameter> named() { return {{"w", &parameter}}; }
  Floats row(int64_t i) const { return parameter.value().slice(i, i + 1).to_vector<float>(); }

  /// A step in which rows 1 and 3 have the gradient `g`, by rows or with zeros in the others.
  void step(Optimizer& optimizer, float g, bool by_rows) {
    optimizer.zero_gradients();
    const auto weight = parameter.variable();
    const Variable y = embedding_bag(integers({3, 1}), integers({0, 2}), {}, weight,
                                     by_rows ? RowsOfGradient::touched : RowsOfGradient::all);
    scale(sum(y), g).backward();
    optimizer.step();
  }
};

TEST(RowUpdate, PlainSgdIsTheDenseUpdate) {
  Rows sparse, dense;
  Sgd a(sparse.named(), {.lr = 0.1}), b(dense.named(), {.lr = 0.1});
  for (const float g : {1.0f, 0.3f}) {
    sparse.step(a, g, true);
    dense.step(b, g, false);
    EXPECT_EQ(sparse.parameter.value().to_vector<float>(), dense.parameter.value().to_vector<float>());
  }
}

// In rows that always have a gradient, momentum, moments and weight decay are those of the dense update. The other rows
// and their state stay.
template <class Kind>
void expect_lazy(const typename Kind::Options& options) {
  Rows sparse, dense;
  Kind a(sparse.named(), options), b(dense.named(), options);
  for (const float g : {1.0f, 0.3f, -2.0f}) {
    sparse.step(a, g, true);
    dense.step(b, g, false);
  }
  for (const int64_t touched : {1, 3}) EXPECT_EQ(sparse.row(touched), dense.row(touched));
  EXPECT_EQ(sparse.row(0), (Floats{1, 1}));
  EXPECT_EQ(sparse.row(2), (Floats{3, 3}));
  for (const auto& [name, tensor] : a.state())
    if (tensor.rank() == 2) {
      EXPECT_EQ(tensor.slice(0, 1).template to_vector<float>(), (Floats{0, 0})) << name;
      EXPECT_NE(tensor.slice(1, 2).template to_vector<float>(), (Floats{0, 0})) << name;
    }
}

TEST(RowUpdate, SgdsMomentumAndWeightDecayWaitInOtherRows) {
  expect_lazy<Sgd>({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01});
  expect_lazy<Sgd>({.lr = 0.1, .momentum = 0.9, .nesterov = true});
}

TEST(RowUpdate, AdamsMomentsWaitInOtherRows) {
  expect_lazy<Adam>({.lr = 0.1});
  expect_lazy<Adam>({.lr = 0.1, .weight_decay = 0.01, .decoupled = true});
}

// As torch.optim.SparseAdam: row 1 after two steps, row 3 after one.
TEST(RowUpdate, AdamCountsStepsOfTheWholeParameter) {
  Rows rows;
  Adam adam(rows.named(), {.lr = 0.1});
  const auto step = [&](const std::vector<int64_t>& touched, float g) {
    adam.zero_gradients();
    const Variable y = embedding_bag(integers(touched), integers({0, std::ssize(touched)}), {},
                                     rows.parameter.variable(), RowsOfGradient::touched);
    scale(sum(y), g).backward();
    adam.step();
  };
  step({1}, 1);
  step({1, 3}, 0.5);
  const double second = 0.999 * 0.001 + 0.001 * 0.25, correction = 1 - 0.999 * 0.999;
  const double row1 = 2 - 0.1 - 0.1 * ((0.9 * 0.1 + 0.1 * 0.5) / (1 - 0.81)) / (std::sqrt(second / correction) + 1e-8);
  const double row3 = 4 - 0.1 * (0.1 * 0.5 / (1 - 0.81)) / (std::sqrt(0.001 * 0.25 / correction) + 1e-8);
  EXPECT_NEAR(rows.row(1)[0], row1, 1e-6);
  EXPECT_NEAR(rows.row(3)[0], row3, 1e-6);
}

TEST(RowUpdate, ClippingAndNormsSeeTheRows) {
  Rows sparse, dense;
  Sgd a(sparse.named(), {.lr = 0.1}), b(dense.named(), {.lr = 0.1});
  a.set_clip_norm(0.5);
  b.set_clip_norm(0.5);
  sparse.step(a, 1, true);
  dense.step(b, 1, false);
  EXPECT_EQ(a.squared_gradient_norm().item(), 4);
  EXPECT_EQ(sparse.parameter.value().to_vector<float>(), dense.parameter.value().to_vector<float>());
}

/// A step of linear_cross_entropy over 40 classes in chunks of 7.
void classify(Optimizer& optimizer, Parameter& weight) {
  optimizer.zero_gradients();
  const Tensor x = Tensor::from<float>({2, 3}, Floats{1, -2, 0.5f, 0.25f, 3, -1});
  linear_cross_entropy(x, weight.variable(), integers({3, 39, 8}), integers({0, 2, 3}), {.chunk = 7}).loss.backward();
  optimizer.step();
}

TEST(UpdateInBackward, GivesTheBitsOfAStep) {
  for (const double momentum : {0.0, 0.9}) {
    Parameter whole, blocks;
    for (Parameter* parameter : {&whole, &blocks}) parameter->set_value(Tensor::full({40, 3}, 0.5));
    const Sgd::Options options{.lr = 0.3, .momentum = momentum, .weight_decay = 0.01};
    Sgd a({{"w", &whole}}, options), b({{"w", &blocks}}, options);
    b.update_in_backward();
    a.measure_gradient_norm(true);
    b.measure_gradient_norm(true);
    for (const double lr : {0.3, 0.1, 0.1}) {
      a.set_learning_rate(lr);
      b.set_learning_rate(lr);
      classify(a, whole);
      classify(b, blocks);
      EXPECT_TRUE(whole.gradient().defined());
      EXPECT_FALSE(blocks.gradient().defined());
      EXPECT_EQ(blocks.value().to_vector<float>(), whole.value().to_vector<float>());
      EXPECT_NEAR(b.squared_gradient_norm().item(), a.squared_gradient_norm().item(), 1e-6);
    }
  }
}

TEST(UpdateInBackward, SaysWhatItCannotDo) {
  Rows rows;
  Adam adam(rows.named(), {});
  EXPECT_EQ(message_of<InputError>([&] { adam.update_in_backward(); }),
            "optimizer: a rule does not update parameters by blocks of rows, expected sgd");
  Sgd sgd(rows.named(), {});
  sgd.set_clip_norm(1);
  EXPECT_EQ(message_of<InputError>([&] { sgd.update_in_backward(); }),
            "optimizer: gradients are clipped at 1, expected no clipping if backward updates parameters");
  Sgd later(rows.named(), {});
  later.update_in_backward();
  later.set_clip_norm(0);
  EXPECT_EQ(message_of<InputError>([&] { later.set_clip_norm(1); }),
            "optimizer: gradients are clipped at 1, expected no clipping if backward updates parameters");
}

}  // namespace
}  // namespace tern
