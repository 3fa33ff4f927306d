#include <gtest/gtest.h>

#include <cmath>

#include "tern/apps/reproduce/qsvrg.h"

namespace tern::reproduce {
namespace {

double norm(const Qsvrg::Vector& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}

LinearProblem ridge() { return {LinearLoss::squared, drawn_examples(64, 256, 1), 10}; }
LinearProblem logistic() { return {LinearLoss::logistic, digit_examples(64, 1), 10}; }

TEST(LinearProblem, HasTheGradientOfItsValue) {
  for (const LinearProblem& problem : {ridge(), logistic()}) {
    Qsvrg::Vector x(static_cast<size_t>(problem.dimensions()));
    for (size_t e = 0; e < x.size(); ++e) x[e] = std::sin(static_cast<double>(e));
    const Qsvrg::Vector gradient = problem.gradient(x, 0, problem.functions());
    for (const size_t e : {size_t{0}, size_t{100}, x.size() - 1}) {
      constexpr double kStep = 1e-5;
      Qsvrg::Vector up = x, down = x;
      up[e] += kStep;
      down[e] -= kStep;
      EXPECT_NEAR((problem.value(up) - problem.value(down)) / (2 * kStep), gradient[e], 1e-8);
    }
  }
}

TEST(LinearProblem, FindsItsMinimum) {
  for (const LinearProblem& problem : {ridge(), logistic()})
    EXPECT_LT(norm(problem.gradient(problem.minimizer(), 0, problem.functions())), 1e-12);
}

TEST(LinearProblem, IsAsSmoothAndConvexAsItSays) {
  EXPECT_DOUBLE_EQ(ridge().smoothness(), 1 + 1.0 / 9);  // φ'' = 1, ℓ = 1/9
  EXPECT_DOUBLE_EQ(logistic().smoothness(), 0.25 + 0.25 / 9);
  // All weight of f_i lies along one example. So the curvature of f_i is L along this example and ℓ across it.
  const LinearProblem one(LinearLoss::squared, {.dimensions = 2, .features = {1, 0}, .targets = {0}}, 5);
  EXPECT_DOUBLE_EQ(one.gradient(Qsvrg::Vector{1, 0}, 0, 1)[0], one.smoothness());
  EXPECT_DOUBLE_EQ(one.gradient(Qsvrg::Vector{0, 1}, 0, 1)[1], one.smoothness() / 5);
}

/// Runs three epochs of 20 κ steps with η = 1/(12 L). Returns f(y) − f* relative to the start, and the bits of the last
/// epoch.
std::pair<double, double> descend(const LinearProblem& problem, const std::string& codec) {
  const Qsvrg::Vector start(static_cast<size_t>(problem.dimensions()));
  Qsvrg qsvrg(problem, start, {.codec = codec, .rate = 1 / (12 * problem.smoothness()), .steps = 200});
  double bits = 0;
  for (int epoch = 0; epoch < 3; ++epoch) bits = qsvrg.run_epoch();
  const double least = problem.value(problem.minimizer());
  return {(problem.value(qsvrg.y()) - least) / (problem.value(start) - least), bits};
}

TEST(Qsvrg, FallsAsFastAsWithFloatsAtATenthOfTheBits) {
  const LinearProblem problem = ridge();
  const auto [floats, float_bits] = descend(problem, "none");
  const auto [codes, code_bits] = descend(problem, "qsgd:levels=16,bucket=0,code=elias");
  EXPECT_EQ(float_bits, 32 * 256 * 201.0);
  EXPECT_LT(floats, 0.1);
  EXPECT_NEAR(codes / floats, 1, 0.2);
  EXPECT_LT(codes, std::pow(0.9, 3));  // Theorem 3.6
  EXPECT_LT(code_bits, float_bits / 8);
  EXPECT_GT(code_bits, 32 * 256 + 200 * (32 + 256.0)) << "less than a bit for each element is not this code";
}

TEST(Qsvrg, HasThePapersBound) { EXPECT_DOUBLE_EQ(qsvrg_bits_bound(1000, 99), 2832 * 100 + 32000); }

}  // namespace
}  // namespace tern::reproduce
