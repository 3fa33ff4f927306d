#include "tern/dist/codec/rans.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
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
    for (const size_t count : {1, 2, 3, 1000, 65535, 65536, 70001, 300'007}) {
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

/// Where the byte after the table is: the number of frequencies, then each of one to three bytes.
size_t table_end(std::span<const std::byte> bytes) {
  size_t left = static_cast<size_t>(bytes[0]) | static_cast<size_t>(bytes[1]) << 8, at = 2;
  for (; left > 0; ++at) left -= (bytes[at] & std::byte{0x80}) == std::byte{0} ? 1 : 0;
  return at;
}

TEST(Rans, CutsLongMessagesWithEnoughEntropyIntoBlocksOfStreams) {
  const auto block_bits = [](size_t count, double ratio) {
    const auto bytes = encode(geometric(count, ratio, 254));
    return static_cast<int>(bytes[table_end(bytes)]);
  };
  EXPECT_EQ(block_bits(65'536, 0.3), 0) << "1.3 bits a symbol: 10 KiB";
  EXPECT_EQ(block_bits(1 << 20, 0.3), 18) << "10 and 20 KiB are not enough for 32 states";
  EXPECT_EQ(block_bits(1 << 20, 0.98), 16);
  EXPECT_EQ(block_bits(1 << 20, 1e-5), 0);
}

TEST(Rans, RefusesBrokenBlocks) {
  const auto symbols = geometric(200'000, 0.98, 254);
  const auto good = encode(symbols);
  const size_t at = table_end(good), lengths = at + 1, first = lengths + 3 * 4;
  ASSERT_EQ(static_cast<int>(good[at]), 16);
  std::vector<uint16_t> found(symbols.size());
  const auto refusal = [&](size_t byte, std::byte value) {
    auto bad = good;
    bad[byte] = value;
    return message_of<Error>([&] { read_rans(bad, 255, found); });
  };
  EXPECT_EQ(refusal(at, good[at]), "");
  EXPECT_EQ(refusal(at, std::byte{15}),
            "entropy coder's blocks have 2^15 symbols, expected 2^16 or more, and at most 200000");
  EXPECT_EQ(refusal(at, std::byte{18}),
            "entropy coder's blocks have 2^18 symbols, expected 2^16 or more, and at most 200000");
  EXPECT_NE(refusal(lengths + 3, std::byte{1}).find("bytes early"), std::string::npos);
  EXPECT_EQ(refusal(first + 7, std::byte{0xff}), "entropy coder's state is out of range");
  EXPECT_NE(refusal(good.size() - 1, good.back() ^ std::byte{1}), "");
  auto shorter = good;  // the first block lacks a word, and its length says so
  shorter.erase(shorter.begin() + static_cast<std::ptrdiff_t>(first + 32 * 8),
                shorter.begin() + static_cast<std::ptrdiff_t>(first + 32 * 8 + 4));
  uint32_t words = 0;
  std::memcpy(&words, &good[lengths], sizeof words);
  --words;
  std::memcpy(&shorter[lengths], &words, sizeof words);
  EXPECT_NE(message_of<Error>([&] { read_rans(shorter, 255, found); }), "");
  auto longer = good;
  longer.push_back(std::byte{0});
  EXPECT_EQ(message_of<Error>([&] { read_rans(longer, 255, found); }), "message goes on after its last code word");
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
