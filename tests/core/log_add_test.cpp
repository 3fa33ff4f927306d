#include "tern/core/log_add.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

TEST(LogAdd, IsTheLogarithmOfASum) {
  const double impossible = -std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NEAR(log_add(std::log(0.25), std::log(0.5)), std::log(0.75), 1e-15);
  EXPECT_NEAR(log_add(-2000, -2000), -2000 + std::log(2.0), 1e-12);
  EXPECT_EQ(log_add(-2000, -1), -1);
  EXPECT_EQ(log_add(impossible, -3), -3);
  EXPECT_EQ(log_add(-3, impossible), -3);
  EXPECT_EQ(log_add(impossible, impossible), impossible);
  EXPECT_TRUE(std::isnan(log_add(nan, -3)));
  EXPECT_TRUE(std::isnan(log_add(impossible, nan)));
}

}  // namespace
}  // namespace tern
