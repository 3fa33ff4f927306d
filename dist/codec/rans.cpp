#include "tern/dist/codec/rans.h"

#include <algorithm>

#include "tern/core/error.h"
#include "tern/dist/bytes.h"

namespace tern {
namespace {

constexpr int kBits = 16;
constexpr uint32_t kTotal = 1u << kBits;
constexpr uint64_t kLowest = uint64_t{1} << 31;  // of a state between symbols

/// Frequencies in proportion to the counts, at least 1 where a symbol occurs; the sum is kTotal.
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
  // What rounding left over goes to the most frequent symbol; what it took too much is taken where most remains.
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

}  // namespace

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

}  // namespace tern
