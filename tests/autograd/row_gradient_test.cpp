#include <gtest/gtest.h>

#include "tern/autograd/functional.h"
#include "tern/autograd/parameter.h"
#include "tern/core/parallel.h"
#include "tests/support/gradcheck.h"
#include "tests/support/values.h"

namespace tern {
namespace {

using Numbers = std::vector<int64_t>;

/// Three rows over eight columns: columns 5 and 2 come twice, 0, 3, 4 and 7 never.
const Tensor kColumns = integers({5, 2, 6, 5, 1, 2}), kStarts = integers({0, 3, 3, 6});

/// Σ p·bags(weight), for a fixed random p.
Variable loss_of(const Variable& weight, RowsOfGradient rows) {
  const Tensor values = test::random_tensor({6}, 3).to(DType::f32);
  return sum(embedding_bag(kColumns, kStarts, values, weight, rows) *
             Variable(test::random_tensor({3, 4}, 4).to(weight.value().dtype())));
}

struct Weight {
  Parameter parameter;
  Weight() { parameter.set_value(test::random_tensor({8, 4}, 5).to(DType::f32)); }
  std::vector<float> dense(int passes) {
    for (int i = 0; i < passes; ++i) loss_of(parameter.variable(), RowsOfGradient::all).backward();
    return parameter.gradient().to_vector<float>();
  }
};

TEST(RowGradient, HasTheTouchedRowsOfTheDenseGradient) {
  Weight dense, sparse;
  const auto expected = dense.dense(1);
  loss_of(sparse.parameter.variable(), RowsOfGradient::touched).backward();
  const RowGradient& rows = sparse.parameter.row_gradient();
  ASSERT_TRUE(rows.defined());
  EXPECT_EQ(rows.rows.to_vector<int64_t>(), (Numbers{1, 2, 5, 6}));
  EXPECT_EQ(rows.values.shape(), (Shape{4, 4}));
  EXPECT_EQ(sparse.parameter.gradient().to_vector<float>(), expected);
  EXPECT_FALSE(sparse.parameter.row_gradient().defined()) << "the dense one took its place";
}

TEST(RowGradient, ContributionsAddUp) {
  Weight dense, sparse;
  const auto expected = dense.dense(2);
  for (int i = 0; i < 2; ++i) loss_of(sparse.parameter.variable(), RowsOfGradient::touched).backward();
  ASSERT_TRUE(sparse.parameter.row_gradient().defined());
  EXPECT_EQ(sparse.parameter.gradient().to_vector<float>(), expected);
}

TEST(RowGradient, UnionsRowsOfBoth) {
  const RowGradient a = {integers({1, 4}), f64({2, 1}, {1, 2})}, b = {integers({0, 4, 6}), f64({3, 1}, {10, 20, 30})};
  const RowGradient sum = a + b;
  EXPECT_EQ(sum.rows.to_vector<int64_t>(), (Numbers{0, 1, 4, 6}));
  expect_values(sum.values, {10, 1, 22, 30});
  expect_values(sum.dense({7, 1}), {10, 1, 0, 0, 22, 0, 30});
}

TEST(RowGradient, ADenseContributionMakesAllDense) {
  for (const bool dense_first : {false, true}) {
    Weight mixed, dense;
    const auto one = dense.dense(1);
    const auto use = [&](bool all) {
      if (all)
        sum(mixed.parameter.variable()).backward();
      else
        loss_of(mixed.parameter.variable(), RowsOfGradient::touched).backward();
    };
    use(dense_first);
    use(!dense_first);
    EXPECT_FALSE(mixed.parameter.row_gradient().defined());
    const auto found = mixed.parameter.gradient().to_vector<float>();
    for (size_t i = 0; i < one.size(); ++i) EXPECT_FLOAT_EQ(found[i], one[i] + 1);
  }
}

TEST(RowGradient, AWeightThatIsNoLeafGetsADenseOne) {
  Weight weight;
  const Variable scaled = scale(weight.parameter.variable(), 2);
  loss_of(scaled, RowsOfGradient::touched).backward();
  EXPECT_FALSE(weight.parameter.row_gradient().defined());
  Weight dense;
  const auto one = dense.dense(1);
  const auto found = weight.parameter.gradient().to_vector<float>();
  for (size_t i = 0; i < one.size(); ++i) EXPECT_FLOAT_EQ(found[i], 2 * one[i]);
}

TEST(RowGradient, HasTheSameBitsForAnyNumberOfThreads) {
  Numbers columns, starts{0};
  for (int64_t i = 0; i < 4000; ++i) columns.push_back(i * 37 % 911);
  for (int64_t n = 1; n <= 100; ++n) starts.push_back(40 * n);
  const int before = thread_count();
  std::vector<float> first;
  for (const int threads : {1, 2, 5}) {
    set_thread_count(threads);
    const auto weight = Variable::leaf(test::random_tensor({911, 70}, 5).to(DType::f32));
    const Variable y = embedding_bag(integers(columns), integers(starts), {}, weight, RowsOfGradient::touched);
    sum(y * Variable(test::random_tensor({100, 70}, 4).to(DType::f32))).backward();
    const auto found = weight.gradient().to_vector<float>();
    if (first.empty()) first = found;
    EXPECT_EQ(found, first) << threads << " threads";
  }
  set_thread_count(before);
}

}  // namespace
}  // namespace tern
