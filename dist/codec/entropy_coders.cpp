#include "tern/dist/codec/entropy_coders.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "tern/core/error.h"
#include "tern/dist/comm/bytes.h"

namespace tern {
namespace {

uint64_t size_of_level(int32_t level) { return static_cast<uint64_t>(std::abs(level)); }

int64_t dense_bits(std::span<const int32_t> levels) {
  int64_t bits = 0;
  for (const int32_t level : levels) bits += omega_bits(size_of_level(level) + 1) + (level != 0);
  return bits;
}

int64_t sparse_bits(std::span<const int32_t> levels) {
  int64_t bits = 0;
  uint64_t count = 0, gap = 0;
  for (const int32_t level : levels) {
    ++gap;
    if (level == 0) continue;
    bits += omega_bits(gap) + 1 + omega_bits(size_of_level(level));
    ++count;
    gap = 0;
  }
  return bits + omega_bits(count + 1);
}

int32_t checked_level(bool negative, uint64_t size, int32_t most) {
  check(size <= static_cast<uint64_t>(most), "message holds level ", size, ", beyond ", most);
  return negative ? -static_cast<int32_t>(size) : static_cast<int32_t>(size);
}

constexpr int kBits = 16;
constexpr uint32_t kTotal = 1u << kBits;
constexpr uint64_t kLowest = uint64_t{1} << 31;  // lower bound of the state between symbols

/// Frequencies in proportion to the counts. A symbol that occurs has at least 1. The sum is kTotal.
std::vector<uint32_t> frequencies_of(std::span<const uint16_t> symbols) {
  std::vector<uint64_t> counts(size_t{1} + *std::ranges::max_element(symbols));
  for (const uint16_t symbol : symbols) ++counts[symbol];
  std::vector<uint32_t> frequencies(counts.size());
  int64_t missing = kTotal;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const uint64_t share = (counts[i] * kTotal + symbols.size() / 2) / symbols.size();
    frequencies[i] = static_cast<uint32_t>(std::max<uint64_t>(1, share));
    missing -= frequencies[i];
  }
  // If the sum is too small, the most frequent symbol gets the rest. If it is too large, the largest frequency gives 1
  // at a time.
  if (missing > 0) *std::ranges::max_element(frequencies) += static_cast<uint32_t>(missing);
  for (; missing < 0; ++missing) --*std::ranges::max_element(frequencies);
  return frequencies;
}

std::vector<uint32_t> starts_of(std::span<const uint32_t> frequencies) {
  std::vector<uint32_t> starts;
  uint32_t start = 0;
  for (const uint32_t frequency : frequencies) {
    starts.push_back(start);
    start += frequency;
  }
  return starts;
}

std::vector<uint32_t> read_frequencies(ByteReader& reader, uint32_t end) {
  const uint32_t count = reader.value<uint16_t>();
  check(count <= end, "entropy table has ", count, " symbols, at most ", end, " were expected");
  std::vector<uint32_t> frequencies(count);
  uint64_t total = 0;
  for (uint32_t& frequency : frequencies) {
    uint32_t byte = 0x80;
    for (int shift = 0; (byte & 0x80u) != 0; shift += 7) {
      check(shift <= 14, "entropy table holds a frequency of more than three bytes");
      byte = reader.value<uint8_t>();
      frequency |= (byte & 0x7fu) << shift;
    }
    total += frequency;
  }
  check(total == kTotal, "entropy table's frequencies add up to ", total, ", expected ", kTotal);
  return frequencies;
}

constexpr auto kTrits = static_cast<size_t>(kTritsPerByte);

}  // namespace

int omega_bits(uint64_t number) {
  int bits = 1;
  for (; number > 1; number = static_cast<uint64_t>(std::bit_width(number)) - 1) bits += std::bit_width(number);
  return bits;
}

void write_omega(BitWriter& bits, uint64_t number) {
  uint64_t groups[8];
  int count = 0;
  for (; number > 1; number = static_cast<uint64_t>(std::bit_width(number)) - 1) groups[count++] = number;
  while (count > 0) {
    const uint64_t group = groups[--count];
    bits.write(group, std::bit_width(group));
  }
  bits.write(0, 1);
}

uint64_t read_omega(BitReader& bits) {
  uint64_t number = 1;
  while (bits.bit() == 1) {
    check(number < 64, "message holds a number of more than 64 bits");
    uint64_t group = 1;
    for (uint64_t i = 0; i < number; ++i) group = group << 1 | bits.bit();
    number = group;
  }
  return number;
}

void append_elias(std::span<const int32_t> levels, std::vector<std::byte>& bytes) {
  BitWriter bits(bytes);
  const bool dense = dense_bits(levels) < sparse_bits(levels);
  bits.write(dense ? 1 : 0, 1);
  if (!dense)
    write_omega(bits, static_cast<uint64_t>(levels.size() - static_cast<size_t>(std::ranges::count(levels, 0))) + 1);
  uint64_t gap = 0;
  for (const int32_t level : levels) {
    ++gap;
    if (dense) write_omega(bits, size_of_level(level) + 1);
    if (level == 0) continue;
    if (!dense) write_omega(bits, gap);
    bits.write(level < 0 ? 1 : 0, 1);
    if (!dense) write_omega(bits, size_of_level(level));
    gap = 0;
  }
}

void read_elias(std::span<const std::byte> bytes, int32_t most, std::span<int32_t> levels) {
  BitReader bits(bytes);
  std::ranges::fill(levels, 0);
  if (bits.bit() == 1) {
    for (int32_t& level : levels) {
      const uint64_t size = read_omega(bits) - 1;
      level = checked_level(size != 0 && bits.bit() == 1, size, most);
    }
  } else {
    const uint64_t count = read_omega(bits) - 1;
    check(count <= levels.size(), "message announces ", count, " levels that are not zero, of ", levels.size());
    size_t end = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t gap = read_omega(bits);
      check(gap <= levels.size() - end, "message goes beyond element ", levels.size());
      end += gap;
      const bool negative = bits.bit() == 1;
      levels[end - 1] = checked_level(negative, read_omega(bits), most);
    }
  }
  bits.finish();
}

int64_t most_elias_bytes(int64_t n, int64_t most) {
  return (1 + n * (omega_bits(static_cast<uint64_t>(most) + 1) + 1) + 7) / 8;
}

void append_rans(std::span<const uint16_t> symbols, std::vector<std::byte>& bytes) {
  const auto frequencies = frequencies_of(symbols);
  const auto starts = starts_of(frequencies);
  append_value(bytes, static_cast<uint16_t>(frequencies.size()));
  for (uint32_t frequency : frequencies) {
    for (; frequency >= 0x80; frequency >>= 7) bytes.push_back(static_cast<std::byte>(frequency | 0x80u));
    bytes.push_back(static_cast<std::byte>(frequency));
  }
  std::vector<uint32_t> words;
  uint64_t state = kLowest;
  for (size_t i = symbols.size(); i-- > 0;) {
    const uint64_t frequency = frequencies[symbols[i]];
    if (state >= frequency << (31 - kBits + 32)) {
      words.push_back(static_cast<uint32_t>(state));
      state >>= 32;
    }
    state = (state / frequency << kBits) + state % frequency + starts[symbols[i]];
  }
  append_value(bytes, state);
  std::ranges::reverse(words);
  append_values(bytes, std::span<const uint32_t>(words));
}

void read_rans(std::span<const std::byte> bytes, uint32_t end, std::span<uint16_t> symbols) {
  ByteReader reader(bytes);
  const auto frequencies = read_frequencies(reader, end);
  const auto starts = starts_of(frequencies);
  std::vector<uint16_t> symbol_at(kTotal);
  for (size_t i = 0; i < frequencies.size(); ++i)
    std::fill_n(symbol_at.begin() + starts[i], frequencies[i], static_cast<uint16_t>(i));
  auto state = reader.value<uint64_t>();
  check(state >= kLowest && state < kLowest << 32, "entropy coder's state is out of range");
  for (uint16_t& symbol : symbols) {
    const auto slot = static_cast<uint32_t>(state & (kTotal - 1));
    symbol = symbol_at[slot];
    state = frequencies[symbol] * (state >> kBits) + slot - starts[symbol];
    if (state < kLowest) state = state << 32 | reader.value<uint32_t>();
  }
  check(state == kLowest && reader.empty(), "entropy coder does not end where it began");
}

void append_trits(std::span<const int32_t> values, std::vector<std::byte>& bytes) {
  for (size_t first = 0; first < values.size(); first += kTrits) {
    int32_t byte = 0;
    for (size_t i = kTrits; i-- > 0;) byte = 3 * byte + 1 + (first + i < values.size() ? values[first + i] : 0);
    bytes.push_back(static_cast<std::byte>(byte));
  }
}

void read_trits(std::span<const std::byte> bytes, std::span<int32_t> values) {
  check(static_cast<int64_t>(bytes.size()) == trit_bytes(static_cast<int64_t>(values.size())), "codes have ",
        bytes.size(), " bytes, expected ", trit_bytes(static_cast<int64_t>(values.size())));
  for (size_t i = 0; i < bytes.size(); ++i) {
    auto byte = static_cast<int32_t>(bytes[i]);
    check(byte < 243, "byte ", i, " holds ", byte, ", beyond five trits");
    for (size_t e = kTrits * i; e < std::min(kTrits * (i + 1), values.size()); ++e, byte /= 3) values[e] = byte % 3 - 1;
  }
}

}  // namespace tern
