#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "tern/kernels/codec_arithmetic.h"
#include "tern/kernels/entropy.h"

// The arithmetic of entropy codes. It has whole numbers only, so that all targets give the same bytes.

namespace tern::kernels {

inline constexpr int kRansBits = 16;
inline constexpr uint32_t kRansTotal = 1u << kRansBits;     // what the frequencies of a table add up to
inline constexpr uint64_t kRansLowest = uint64_t{1} << 31;  // lower bound of a state between symbols
inline constexpr int kRansStreams = 32, kLeastRansBlockBits = 16;

/// A symbol's level and sign as in bit planes (codec_code), and the symbol of such a code.
constexpr uint32_t code_of_symbol(uint32_t symbol) { return symbol + 2 * (symbol % 2); }
constexpr uint32_t symbol_of_code(uint32_t code) { return code - 2 * (code % 2); }

/// The code of element i in the bit planes of `numel` elements.
constexpr uint32_t code_at(const uint8_t* codes, int64_t numel, int bits, int64_t i) {
  uint32_t code = 0;
  for (int bit = 0; bit < bits; ++bit) {
    const CodecPlane plane = codec_plane(numel, bits, i / kCodecGroup, bit);
    code |= (uint32_t{codes[plane.at + i % kCodecGroup / 8]} >> (i % 8) & 1u) << bit;
  }
  return code;
}

/// The frequency of a symbol that occurs `count` times in `all`, before the frequencies are made to add up.
constexpr uint32_t rans_share(uint64_t count, uint64_t all) {
  return static_cast<uint32_t>(std::max<uint64_t>(1, (count * kRansTotal + all / 2) / all));
}
/// The frequencies of a table, in proportion to the counts. A symbol that occurs has at least 1. If their sum is too
/// small, the most frequent symbol gets the rest. If it is too large, the largest frequency gives 1 at a time.
std::vector<uint32_t> rans_frequencies(std::span<const uint64_t> counts, uint64_t all);
/// Bytes of a frequency in the table.
constexpr int rans_frequency_bytes(uint32_t frequency) { return frequency < 0x80 ? 1 : frequency < 0x4000 ? 2 : 3; }
constexpr uint8_t rans_frequency_byte(uint32_t frequency, int byte) {
  const uint32_t rest = frequency >> (7 * byte);
  return static_cast<uint8_t>(rest < 0x80 ? rest : rest | 0x80u);
}

/// Entropies are in units of 2^-24 bits.
inline constexpr int kEntropyFraction = 24;
/// log2(x), rounded down, for x >= 1.
constexpr uint64_t entropy_log2(uint64_t x) {
  uint64_t result = static_cast<uint64_t>(std::bit_width(x)) - 1;
  uint64_t rest = result <= 31 ? x << (31 - result) : x >> (result - 31);  // times 2^-31: from 1 to below 2
  for (int bit = 0; bit < kEntropyFraction; ++bit) {
    rest = rest * rest >> 31;
    const uint64_t carry = rest >> 32;
    rest >>= carry;
    result = result << 1 | carry;
  }
  return result;
}
/// The part of a symbol that occurs `count` times in the entropy of `all` symbols; 0 if it does not occur.
constexpr uint64_t entropy_part(uint64_t count, uint64_t all) {
  return count == 0 ? 0 : count * (entropy_log2(all) - entropy_log2(count));
}
/// The entropy that a block should have, so that its states cost at most 1 %.
inline constexpr uint64_t kRansBlockEntropy = uint64_t{100 * 64 * kRansStreams} << kEntropyFraction;

constexpr bool is_short_rans(uint64_t all) { return all < uint64_t{1} << kLeastRansBlockBits; }
/// log2 of the length of blocks: the shortest that have enough entropy, or one block; 0: all symbols are one stream.
constexpr int rans_block_bits(uint64_t entropy, uint64_t all) {
  if (is_short_rans(all) || entropy < kRansBlockEntropy) return 0;
  const double of_one = static_cast<double>(entropy) / static_cast<double>(all);
  int found = kLeastRansBlockBits;
  while (uint64_t{2} << found <= all &&
         of_one * static_cast<double>(uint64_t{1} << found) < static_cast<double>(kRansBlockEntropy))
    ++found;
  return found;
}
/// The number of blocks of `all` symbols. The symbols of block b begin at b << bits; the last block has the rest, too.
constexpr int64_t rans_blocks(int64_t all, int bits) { return bits == 0 ? 1 : all >> bits; }

/// A code word: its lowest `length` bits, the highest first.
struct BitCode {
  uint64_t bits = 0;
  int length = 0;
};
constexpr BitCode operator+(const BitCode& first, const BitCode& then) {
  return {first.bits << then.length | then.bits, first.length + then.length};
}
/// Elias' omega code of a number from 1 to 2^32.
constexpr BitCode omega_code(uint64_t number) {
  BitCode code = {0, 1};
  for (; number > 1; number = static_cast<uint64_t>(std::bit_width(number)) - 1)
    code = BitCode{number, static_cast<int>(std::bit_width(number))} + code;
  return code;
}
/// What the level of one element adds to the sparse or the dense form.
constexpr BitCode elias_level(bool is_dense, uint32_t code) {
  const BitCode sign = {code % 2, 1}, level = omega_code(is_dense ? code / 2 + 1 : std::max(code / 2, 1u));
  if (code == 0) return is_dense ? level : BitCode{};
  return is_dense ? level + sign : sign + level;
}
/// What precedes it. `gap` is the distance from the last element that is not zero.
constexpr BitCode elias_gap(bool is_dense, uint32_t code, uint64_t gap) {
  return is_dense || code == 0 ? BitCode{} : omega_code(gap);
}
/// What precedes all elements.
constexpr BitCode elias_front(bool is_dense, uint64_t nonzero) {
  const BitCode form = {is_dense ? 1u : 0u, 1};
  return is_dense ? form : form + omega_code(nonzero + 1);
}

/// Reads an omega code. A number of more than 64 bits becomes 2^64 - 1, and its bits are not read.
template <class Bit>
constexpr uint64_t read_omega_code(Bit bit) {
  uint64_t number = 1;
  while (bit() != 0) {
    if (number >= 64) return ~uint64_t{0};
    uint64_t group = 1;
    for (uint64_t i = 0; i < number; ++i) group = group << 1 | bit();
    number = group;
  }
  return number;
}
/// Calls put(i, code) for each element that is not zero. `bit()` gives the next bit of the Elias code. Returns false,
/// and reads no further, if the code names an element that is not there.
template <class Bit, class Put>
constexpr bool read_elias_codes(Bit bit, int64_t numel, Put put) {
  const auto code_of = [](uint64_t level, uint32_t sign) {
    return static_cast<uint32_t>(std::min<uint64_t>(level, ~0u / 2)) << 1 | sign;  // a larger level is not valid either
  };
  if (bit() != 0) {
    for (int64_t i = 0; i < numel; ++i) {
      const uint64_t level = read_omega_code(bit) - 1;
      if (level != 0) put(i, code_of(level, bit()));
    }
    return true;
  }
  int64_t i = -1;
  for (uint64_t left = read_omega_code(bit) - 1; left > 0; --left) {
    const uint64_t gap = read_omega_code(bit);
    if (gap >= static_cast<uint64_t>(numel - i)) return false;
    i += static_cast<int64_t>(gap);
    const uint32_t sign = bit();
    put(i, code_of(read_omega_code(bit), sign));
  }
  return true;
}

/// The entropy code or the Elias code of `numel` levels in bit planes, one symbol after another. Shared by the targets
/// on the CPU.
std::vector<uint8_t> entropy_code(const uint8_t* codes, int64_t numel, int64_t levels);
std::vector<uint8_t> elias_code(const uint8_t* codes, int64_t numel, int64_t levels);
/// Writes the bit planes of such a code. Throws unless the code holds exactly `numel` levels within ±levels.
void read_entropy_code(std::span<const uint8_t> code, int64_t numel, int64_t levels, uint8_t* codes);
void read_elias_code(std::span<const uint8_t> code, int64_t numel, int64_t levels, uint8_t* codes);

/// A code of tensors in bit planes, and the names of its operations.
struct PlaneCode {
  const char *pack, *unpack;
  int64_t (*most_bytes)(int64_t numel, int64_t levels);
  std::vector<uint8_t> (*make)(const uint8_t* codes, int64_t numel, int64_t levels);
  void (*read)(std::span<const uint8_t> code, int64_t numel, int64_t levels, uint8_t* codes);
};
inline constexpr PlaneCode kEntropyCode = {"entropy_pack", "entropy_unpack", most_entropy_bytes, entropy_code,
                                           read_entropy_code};
inline constexpr PlaneCode kEliasCode = {"elias_pack", "elias_unpack", most_elias_bytes, elias_code, read_elias_code};

}  // namespace tern::kernels
