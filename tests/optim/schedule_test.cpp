#include "tern/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tern/core/error.h"

namespace tern {
namespace {

TEST(Schedule, Constant) { EXPECT_EQ(constant_schedule(0.3)(12345), 0.3); }

TEST(Schedule, Poly) {
  const Schedule lr = poly_schedule(0.01, 10000);
  EXPECT_EQ(lr(0), 0.01);
  EXPECT_DOUBLE_EQ(lr(7500), 0.005);
  EXPECT_DOUBLE_EQ(lr(9999), 0.0001);
  EXPECT_EQ(lr(10000), 0);
  EXPECT_EQ(lr(20000), 0);
  EXPECT_DOUBLE_EQ(poly_schedule(2, 10, 2)(5), 0.5);
}

TEST(Schedule, Step) {
  const Schedule lr = step_schedule(1, {3, 5});
  EXPECT_EQ(lr(0), 1);
  EXPECT_EQ(lr(2), 1);
  EXPECT_DOUBLE_EQ(lr(3), 0.1);
  EXPECT_DOUBLE_EQ(lr(4), 0.1);
  EXPECT_DOUBLE_EQ(lr(5), 0.01);
  EXPECT_DOUBLE_EQ(step_schedule(1, {1}, 0.5)(100), 0.5);
}

TEST(Schedule, Cosine) {
  const Schedule lr = cosine_schedule(2, 100);
  EXPECT_EQ(lr(0), 2);
  EXPECT_DOUBLE_EQ(lr(50), 1);
  EXPECT_DOUBLE_EQ(lr(25), 1 + std::sqrt(0.5));
  EXPECT_EQ(lr(100), 0);
  EXPECT_EQ(lr(150), 0);
}

TEST(Schedule, WarmUpWrapsAny) {
  const Schedule lr = warm_up(constant_schedule(1), 4);
  EXPECT_DOUBLE_EQ(lr(0), 0.25);
  EXPECT_DOUBLE_EQ(lr(2), 0.75);
  EXPECT_EQ(lr(3), 1);
  EXPECT_EQ(lr(4), 1);
  const Schedule poly = poly_schedule(1, 100), warm = warm_up(poly, 10);
  EXPECT_DOUBLE_EQ(warm(4), 0.5 * poly(4));
  EXPECT_EQ(warm(50), poly(50));
  EXPECT_EQ(warm_up(poly, 0)(0), poly(0));
}

TEST(Schedule, HoldsARateFirst) {
  const Schedule poly = poly_schedule(1, 100), held = hold_first(0.25, 10, poly);
  EXPECT_EQ(held(0), 0.25);
  EXPECT_EQ(held(9), 0.25);
  EXPECT_EQ(held(10), poly(10));
  EXPECT_EQ(hold_first(0.25, 0, poly)(0), poly(0));
}

TEST(Schedule, RefusesWhatMakesNoSense) {
  EXPECT_THROW(poly_schedule(1, 0), Error);
  EXPECT_THROW(poly_schedule(1, 5, 0), Error);
  EXPECT_THROW(cosine_schedule(1, 0), Error);
  EXPECT_THROW(step_schedule(1, {5, 3}), Error);
  EXPECT_THROW(warm_up(constant_schedule(1), -1), Error);
  EXPECT_THROW(hold_first(1, -1, constant_schedule(1)), Error);
}

}  // namespace
}  // namespace tern
