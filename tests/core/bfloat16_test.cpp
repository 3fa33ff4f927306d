#include "tern/core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tern {
namespace {

TEST(BFloat16, KeepsEveryValueOfItsOwn) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    BFloat16 value;
    value.bits = static_cast<uint16_t>(bits);
    if (std::isnan(static_cast<float>(value))) continue;
    ASSERT_EQ(BFloat16(static_cast<float>(value)).bits, bits);
  }
}

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(static_cast<float>(BFloat16(1.0f + 0x1p-8f)), 1.0f) << "a tie goes to the even neighbor, below";
  EXPECT_EQ(static_cast<float>(BFloat16(1.0f + 3 * 0x1p-8f)), 1.0f + 0x1p-6f) << "and above";
  EXPECT_EQ(static_cast<float>(BFloat16(1.0f + 0x1p-8f + 0x1p-20f)), 1.0f + 0x1p-7f);
  EXPECT_EQ(static_cast<float>(BFloat16(-1.0f - 0x1p-9f)), -1.0f);
}

TEST(BFloat16, KeepsInfinityAndNaN) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(static_cast<float>(BFloat16(infinity)), infinity);
  EXPECT_EQ(static_cast<float>(BFloat16(-infinity)), -infinity);
  EXPECT_EQ(static_cast<float>(BFloat16(std::numeric_limits<float>::max())), infinity) << "too large for 7 bits";
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::numeric_limits<float>::quiet_NaN()))));
  const float low_payload = std::bit_cast<float>(0x7f800001u);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(low_payload)))) << "a NaN must not become infinity";
}

}  // namespace
}  // namespace tern
