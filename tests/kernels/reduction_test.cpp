#include "tern/kernels/reduction.h"

#include <gtest/gtest.h>

#include "tests/support/message_of.h"
#include "tests/support/values.h"

namespace tern::kernels {
namespace {

TEST(Sum, AddsWhereTheOutputHasExtentOne) {
  const Tensor x = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor columns = empty_f64({1, 3}), rows = empty_f64({2, 1}), all = empty_f64({1, 1});
  sum(x, 1, columns);
  expect_values(columns, {5, 7, 9});
  sum(x, 0.5, rows);
  expect_values(rows, {3, 7.5});
  sum(x, 1, all);
  expect_values(all, {21});
  EXPECT_EQ(message_of<Error>([&] { sum(columns, 1, rows); }), "sum: shape [2, 1] does not repeat to [1, 3]");
}

TEST(BroadcastTo, RepeatsWhereTheInputHasExtentOne) {
  Tensor y = empty_f64({2, 3});
  broadcast_to(f64({2, 1}, {1, 2}), 10, y);
  expect_values(y, {10, 10, 10, 20, 20, 20});
}

}  // namespace
}  // namespace tern::kernels
