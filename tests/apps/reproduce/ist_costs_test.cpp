#include <gtest/gtest.h>

#include "tern/apps/reproduce/ist_costs.h"

namespace tern::reproduce {
namespace {

TEST(IstCosts, AreThoseOfFigure2) {
  const IstCosts costs;
  struct Row {
    int64_t machines;
    double parallel, printed, exact;  // floats per step
    double printed_operations;
  };
  const Row rows[] = {{1, 3.68e7, 4.16e6, 3.68e6, 8.52e10},  {2, 7.36e7, 2.32e6, 2.08e6, 4.75e10},
                      {4, 1.472e8, 1.40e6, 1.28e6, 2.87e10}, {8, 2.944e8, 9.4e5, 8.8e5, 1.93e10},
                      {16, 5.888e8, 7.1e5, 6.8e5, 1.45e10},  {32, 1.1776e9, 5.95e5, 5.8e5, 1.22e10}};
  for (const auto& [n, parallel, printed, exact, operations] : rows) {
    EXPECT_DOUBLE_EQ(costs.parallel_floats(n), parallel);
    EXPECT_DOUBLE_EQ(costs.printed_floats(n), printed);
    EXPECT_DOUBLE_EQ(costs.exact_floats(n), exact);
    EXPECT_NEAR(costs.printed_operations(n), operations, 0.005e10);
  }
  EXPECT_NEAR(costs.parallel_operations(), 7.54e10, 0.005e10);
  EXPECT_NEAR(costs.exact_operations(2), 4.260e10, 0.0005e10);
  EXPECT_NEAR(costs.exact_operations(8), 1.802e10, 0.0005e10);
}

TEST(IstCosts, AreWhatTheLedgersCount) {
  const IstCosts costs = {.widths = {10, 16, 24, 16, 6}, .batch = 8, .local_steps = 3};
  for (const int n : {1, 2, 4}) {
    int64_t steps = 0;
    const Numbers counted = count_ist_costs(costs, n, [&](int64_t) { ++steps; });
    EXPECT_EQ(steps, costs.local_steps);
    const double moves = (n - 1.0) / n;
    EXPECT_DOUBLE_EQ(counted.at("parallel_floats").at(0), moves * costs.parallel_floats(n)) << n;
    EXPECT_DOUBLE_EQ(counted.at("ist_floats").at(0), moves * costs.exact_floats(n)) << n;
    EXPECT_DOUBLE_EQ(counted.at("ist_operations").at(0), costs.exact_operations(n)) << n;
  }
}

}  // namespace
}  // namespace tern::reproduce
