#include "tern/dist/codec/entropy_coders.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/message_of.h"

namespace tern {
namespace {

std::string bits_of(std::span<const std::byte> bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += (static_cast<uint32_t>(bytes[i / 8]) >> (7 - i % 8) & 1u) != 0 ? '1' : '0';
  return text;
}

std::string omega(uint64_t number) {
  std::vector<std::byte> bytes;
  BitWriter bits(bytes);
  write_omega(bits, number);
  return bits_of(bytes, static_cast<size_t>(omega_bits(number)));
}

std::string elias(const std::vector<int32_t>& levels, size_t count) {
  std::vector<std::byte> bytes;
  append_elias(levels, bytes);
  EXPECT_EQ(bytes.size(), (count + 7) / 8);
  return bits_of(bytes, count);
}

// Made by hand. A code word is the binary number; before it, the binary number of its length less one, and so on down
// to 1. A 0 ends it.
TEST(Elias, WritesTheCodeWords) {
  EXPECT_EQ(omega(1), "0");
  EXPECT_EQ(omega(2), "100");
  EXPECT_EQ(omega(3), "110");
  EXPECT_EQ(omega(4), "101000");
  EXPECT_EQ(omega(5), "101010");
  EXPECT_EQ(omega(7), "101110");
  EXPECT_EQ(omega(8), "1110000");
  EXPECT_EQ(omega(15), "1111110");
  EXPECT_EQ(omega(16), "10100100000");
  EXPECT_EQ(omega(17), "10100100010");
  EXPECT_EQ(omega(100), "1011011001000");
  EXPECT_EQ(omega(1000), "11100111111010000");
}

TEST(Elias, ReadsWhatItWrote) {
  for (int shift = 0; shift < 64; ++shift)
    for (const uint64_t number : {uint64_t{1} << shift, (uint64_t{1} << shift) + 1, ~uint64_t{0} >> shift}) {
      std::vector<std::byte> bytes;
      BitWriter writer(bytes);
      write_omega(writer, number);
      BitReader reader(bytes);
      EXPECT_EQ(read_omega(reader), number);
      reader.finish();
    }
}

TEST(Elias, CodesSparseLevelsByTheirDistances) {
  // First bit 0. Two non-zeros, plus 1: 110. Distance 3: 110, positive, size 2: 100. Distance 5: 101010, negative, size
  // 1.
  EXPECT_EQ(elias({0, 0, 2, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0}, 19),
            std::string("0") + "110" + "110" + "0" + "100" + "101010" + "1" + "0");
}

TEST(Elias, CodesDenseLevelsOneByOne) {
  // First bit 1. 1 + 1: 100 and a sign; 0 + 1: 0; 2 + 1: 110 and a sign. The sparse form takes 18 bits.
  EXPECT_EQ(elias({-1, 0, 2, 1}, 14), std::string("1") + "1001" + "0" + "1100" + "1000");
}

TEST(Elias, SendsNothingButTheCountOfZeros) { EXPECT_EQ(elias(std::vector<int32_t>(1000), 2), "00"); }

std::string refusal(const std::string& text, int32_t most, size_t count) {
  std::vector<std::byte> bytes;
  BitWriter bits(bytes);
  for (const char c : text) bits.write(c == '1' ? 1 : 0, 1);
  std::vector<int32_t> levels(count);
  return message_of<Error>([&] { read_elias(bytes, most, levels); });
}

TEST(Elias, RefusesWhatItWouldNotWrite) {
  EXPECT_EQ(refusal("1"
                    "1000"
                    "0",
                    1, 2),
            "");
  EXPECT_EQ(refusal("1"
                    "1100"
                    "0",
                    1, 2),
            "message holds level 2, beyond 1");
  EXPECT_EQ(refusal("1"
                    "1000"
                    "0"
                    "1",
                    1, 2),
            "message ends in bits that are not zero");
  EXPECT_EQ(refusal("1"
                    "1000"
                    "0"
                    "0000000000",
                    1, 2),
            "message goes on after its last code word");
  EXPECT_EQ(refusal("11111111", 1, 2), "message ends within a code word");
  EXPECT_EQ(refusal(std::string(200, '1'), 1, 2), "message holds a number of more than 64 bits");
  EXPECT_EQ(refusal("0"
                    "101000"
                    "00000000",
                    1, 2),
            "message announces 3 levels that are not zero, of 2");
  EXPECT_EQ(refusal("0"
                    "100"
                    "1100000000",
                    1, 2),
            "message goes beyond element 2");
}

}  // namespace
}  // namespace tern
