#include "tern/core/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace tern {
namespace {

using Words = std::array<uint32_t, 4>;

// Random123 publishes these known answers for philox4x32-10.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, IsAPureFunctionOfItsKey) {
  const RandomKey key{.seed = uint64_t{1} << 40 | 7, .purpose = Purpose::test, .owner = 3, .step = 5, .tensor = 9};
  std::set<uint32_t> first_words{RandomStream(key).word(0)};
  for (int field = 0; field < 6; ++field) {
    RandomKey other = key;
    if (field == 0) other.seed ^= 1;
    if (field == 1) other.seed ^= uint64_t{1} << 40;
    if (field == 2) other.purpose = Purpose::codec;
    if (field == 3) ++other.owner;
    if (field == 4) ++other.step;
    if (field == 5) ++other.tensor;
    first_words.insert(RandomStream(other).word(0));
  }
  EXPECT_EQ(first_words.size(), 7u) << "every field of the key changes the numbers";
  EXPECT_EQ(RandomStream(key).word(6), RandomStream(key).block(1)[2]);
}

TEST(RandomStream, DrawsUniformNumbers) {
  const RandomStream stream({.seed = 1});
  constexpr int kDraws = 100000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = stream.uniform(static_cast<uint64_t>(i));
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);  // 5 standard errors
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.005);
}

TEST(RandomStream, DrawsNormalNumbers) {
  const RandomStream stream({.seed = 1});
  constexpr int kDraws = 100000;
  double sum = 0, squares = 0, fourth = 0, neighbors = 0, previous = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = stream.normal(static_cast<uint64_t>(i));
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    neighbors += x * previous;
    previous = x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.016);  // 5 standard errors each
  EXPECT_NEAR(squares / kDraws, 1, 0.023);
  EXPECT_NEAR(fourth / kDraws, 3, 0.16);
  EXPECT_NEAR(neighbors / kDraws, 0, 0.016);
}

TEST(RandomStream, DrawsBelowABound) {
  const RandomStream stream({.seed = 1});
  std::array<int, 7> counts{};
  for (uint64_t i = 0; i < 70000; ++i) ++counts.at(stream.below(i, 7));
  for (int count : counts) EXPECT_NEAR(count, 10000, 470);  // 5 standard deviations
}

}  // namespace
}  // namespace tern
