#include "tern/dist/codec/entropy_coders.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tern/core/error.h"
#include "tern/core/random.h"
#include "tests/support/message_of.h"

namespace tern {
namespace {

/// Symbols whose probability P(i) is proportional to ratio^i.
std::vector<uint16_t> geometric(size_t count, double ratio, uint32_t most) {
  const RandomStream stream({.seed = 5, .purpose = Purpose::test});
  std::vector<uint16_t> symbols(count);
  for (size_t i = 0; i < count; ++i) {
    const double u = (stream.word(i) + 0.5) * 0x1p-32;
    symbols[i] = static_cast<uint16_t>(std::min<double>(most, std::floor(std::log(u) / std::log(ratio))));
  }
  return symbols;
}

double entropy_bytes(std::span<const uint16_t> symbols) {
  std::map<uint16_t, double> counts;
  for (const uint16_t symbol : symbols) ++counts[symbol];
  double bits = 0;
  for (const auto& [symbol, count] : counts) bits -= count * std::log2(count / static_cast<double>(symbols.size()));
  return bits / 8;
}

std::vector<std::byte> encode(std::span<const uint16_t> symbols) {
  std::vector<std::byte> bytes;
  append_rans(symbols, bytes);
  return bytes;
}

TEST(Rans, ReturnsEverySymbol) {
  for (const double ratio : {1e-5, 1e-2, 0.5, 0.99, 0.9999})
    for (const size_t count : {1, 2, 3, 1000, 70001}) {
      const auto symbols = geometric(count, ratio, 65534);
      std::vector<uint16_t> found(count);
      read_rans(encode(symbols), 65535, found);
      EXPECT_EQ(found, symbols);
    }
}

// Messages with 16 KiB of entropy or more. The header counts too.
TEST(Rans, ComesWithinThreePercentOfTheEntropySlow) {
  for (const auto& [ratio, count] : {std::pair(1e-3, 12'000'000), std::pair(0.05, 500'000), std::pair(0.3, 150'000),
                                     std::pair(0.9, 32'000), std::pair(0.985, 20'000)}) {
    const auto symbols = geometric(static_cast<size_t>(count), ratio, 254);
    const double entropy = entropy_bytes(symbols);
    EXPECT_GE(entropy, 16384) << ratio;
    EXPECT_LE(static_cast<double>(encode(symbols).size()), 1.03 * entropy) << ratio;
  }
}

TEST(Rans, RefusesBrokenMessages) {
  const auto symbols = geometric(1000, 0.5, 14);
  const auto good = encode(symbols);
  std::vector<uint16_t> found(1000);
  const auto refusal = [&](std::vector<std::byte> bytes, uint32_t end = 15) {
    return message_of<Error>([&] { read_rans(bytes, end, found); });
  };
  EXPECT_EQ(refusal(good), "");
  EXPECT_NE(refusal(good, 3).find("at most 3 were expected"), std::string::npos);
  EXPECT_NE(refusal({good.begin(), good.end() - 1}), "");
  auto longer = good;
  longer.insert(longer.end(), 4, std::byte{0});
  EXPECT_EQ(refusal(longer), "entropy coder does not end where it began");
  auto table = good;
  table[2] ^= std::byte{1};
  EXPECT_NE(refusal(table).find("add up to"), std::string::npos);
  auto word = good;
  word[good.size() - 1] ^= std::byte{1};
  EXPECT_EQ(refusal(word), "entropy coder does not end where it began");
}

}  // namespace
}  // namespace tern
