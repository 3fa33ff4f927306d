#include "tern/kernels/divider.h"

#include <gtest/gtest.h>

namespace tern::kernels {
namespace {

TEST(Divider, DividesExactly) {
  constexpr uint32_t kMost = 1u << 31;
  for (const uint32_t divisor :
       {1u, 2u, 3u, 5u, 7u, 10u, 27u, 28u, 33u, 255u, 256u, 641u, 12345u, 65535u, 65537u, 1000003u, kMost - 1, kMost}) {
    const Divider by(divisor);
    for (const uint32_t n : {0u, 1u, 2u, 99u, 1000u, 65535u, 65536u, 999999u, 16777215u, 16777217u, kMost - 1, kMost,
                             kMost + 1, 0xfffffffeu, 0xffffffffu}) {
      ASSERT_EQ(by.quotient(n), n / divisor) << n << " / " << divisor;
      ASSERT_EQ(by.remainder(n), n % divisor) << n << " % " << divisor;
      const uint32_t multiple = n / divisor * divisor;
      ASSERT_EQ(by.quotient(multiple), n / divisor) << multiple << " / " << divisor;
      if (multiple == 0) continue;
      ASSERT_EQ(by.quotient(multiple - 1), n / divisor - 1) << multiple - 1 << " / " << divisor;
    }
  }
}

}  // namespace
}  // namespace tern::kernels
