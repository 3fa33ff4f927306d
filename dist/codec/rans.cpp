#include "tern/dist/codec/rans.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "tern/core/error.h"
#include "tern/core/parallel.h"
#include "tern/dist/comm/bytes.h"
#include "tern/kernels/entropy_arithmetic.h"

namespace tern {
namespace {

__extension__ using Uint128 = unsigned __int128;

using kernels::kLeastRansBlockBits;
using kernels::kRansBits;
using kernels::kRansLowest;
using kernels::kRansStreams;
using kernels::kRansTotal;

std::vector<uint64_t> counts_of(std::span<const uint16_t> symbols) {
  std::vector<uint64_t> counts(size_t{1} + *std::ranges::max_element(symbols));
  std::vector<uint64_t> odd(counts.size());  // so that neighbours that are equal do not wait for each other
  size_t i = 0;
  for (; i + 1 < symbols.size(); i += 2) {
    ++counts[symbols[i]];
    ++odd[symbols[i + 1]];
  }
  if (i < symbols.size()) ++counts[symbols[i]];
  for (size_t symbol = 0; symbol < counts.size(); ++symbol) counts[symbol] += odd[symbol];
  return counts;
}

void append_frequencies(std::span<const uint32_t> frequencies, std::vector<std::byte>& bytes) {
  append_value(bytes, static_cast<uint16_t>(frequencies.size()));
  for (uint32_t frequency : frequencies) {
    for (; frequency >= 0x80; frequency >>= 7) bytes.push_back(static_cast<std::byte>(frequency | 0x80u));
    bytes.push_back(static_cast<std::byte>(frequency));
  }
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
  check(total == kRansTotal, "entropy table's frequencies add up to ", total, ", expected ", kRansTotal);
  return frequencies;
}

/// log2 of the length of blocks: the shortest that have enough entropy, or one block; 0: all symbols are one stream.
int block_bits(std::span<const uint64_t> counts, uint64_t all) {
  if (kernels::is_short_rans(all)) return 0;
  uint64_t entropy = 0;
  for (const uint64_t count : counts) entropy += kernels::entropy_part(count, all);
  return kernels::rans_block_bits(entropy, all);
}

/// How the encoder adds a symbol of frequency f that starts at s to a state x: x ← (x / f)·kRansTotal + x % f + s, with
/// a product in place of the quotient. It is exact below 2^63 (Granlund and Montgomery, PLDI 1994).
struct EncodedSymbol {
  EncodedSymbol(uint64_t frequency, uint64_t start)
      : complement(kRansTotal - frequency), limit(frequency << (63 - kRansBits)) {
    if (frequency < 2) {  // the product gives x - 1 for x / 1
      reciprocal = ~uint64_t{0};
      bias = start + kRansTotal - 1;
      return;
    }
    const int bits = std::bit_width(frequency - 1);
    reciprocal = static_cast<uint64_t>(((Uint128{1} << (bits + 63)) + frequency - 1) / frequency);
    shift = bits - 1;
    bias = start;
  }
  uint64_t next(uint64_t x) const {
    const auto quotient = static_cast<uint64_t>(Uint128{x} * reciprocal >> 64) >> shift;
    return x + bias + quotient * complement;
  }

  uint64_t reciprocal = 0, bias = 0, complement;
  uint64_t limit;  ///< a state from here on first gives up its lower half
  int shift = 0;
};

/// An encoded block: the state of each stream, and the words in the order of decoding.
struct Block {
  std::vector<uint64_t> states;
  std::vector<uint32_t> words;
};

template <size_t kCount>
Block encode_block(std::span<const uint16_t> symbols, const std::vector<EncodedSymbol>& table) {
  std::array<uint64_t, kCount> states;
  states.fill(kRansLowest);
  std::vector<uint32_t> words(symbols.size() / 2 + kCount + 1);  // a symbol moves at most 16 bits
  uint32_t* first = words.data() + words.size();
  const auto encode = [&](size_t i, size_t stream) {
    const EncodedSymbol& symbol = table[symbols[i]];
    const uint64_t x = states[stream];
    const bool full = x >= symbol.limit;
    first[-1] = static_cast<uint32_t>(x);
    first -= full ? 1 : 0;
    states[stream] = symbol.next(full ? x >> 32 : x);
  };
  size_t i = symbols.size();
  for (; i % kCount != 0; --i) encode(i - 1, (i - 1) % kCount);
  for (; i > 0; i -= kCount)
    for (size_t stream = kCount; stream-- > 0;) encode(i - kCount + stream, stream);
  words.erase(words.begin(), words.begin() + (first - words.data()));
  return {{states.begin(), states.end()}, std::move(words)};
}

/// The decoder's tables, by the lower bits of a state and by symbol.
struct DecodedSymbols {
  explicit DecodedSymbols(std::span<const uint32_t> frequencies) : symbol_at(kRansTotal) {
    uint32_t start = 0;
    for (size_t i = 0; i < frequencies.size(); start += frequencies[i++]) {
      std::fill_n(symbol_at.begin() + start, frequencies[i], static_cast<uint16_t>(i));
      ranges.push_back({frequencies[i], start});
    }
  }
  struct Range {
    uint32_t frequency, start;
  };
  std::vector<uint16_t> symbol_at;
  std::vector<Range> ranges;
};

/// Decodes a block from its states and words.
template <size_t kCount>
void decode_block(std::span<const std::byte> bytes, const DecodedSymbols& table, std::span<uint16_t> symbols) {
  ByteReader reader(bytes);
  std::array<uint64_t, kCount> states;
  reader.values(std::span<uint64_t>(states));
  for (const uint64_t state : states)
    check(state >= kRansLowest && state < kRansLowest << 32, "entropy coder's state is out of range");
  std::vector<uint32_t> words((bytes.size() - sizeof states) / sizeof(uint32_t) + kCount);
  reader.values(std::span(words).first(words.size() - kCount));
  check(reader.empty(), "entropy coder's message ends within a word");
  const uint32_t *word = words.data(), *const end = word + words.size() - kCount;
  const auto decode = [&](size_t i, size_t stream) {
    const uint64_t x = states[stream];
    const auto slot = static_cast<uint32_t>(x & (kRansTotal - 1));
    const uint16_t symbol = table.symbol_at[slot];
    const auto [frequency, start] = table.ranges[symbol];
    const uint64_t next = frequency * (x >> kRansBits) + slot - start;
    const bool empty = next < kRansLowest;
    states[stream] = empty ? next << 32 | *word : next;
    word += empty ? 1 : 0;
    symbols[i] = symbol;
  };
  size_t i = 0;
  for (; i + kCount <= symbols.size(); i += kCount) {
    for (size_t stream = 0; stream < kCount; ++stream) decode(i + stream, stream);
    check(word <= end, "message ends within a code word");
  }
  for (size_t stream = 0; i < symbols.size(); ++i, ++stream) decode(i, stream);
  const bool began = std::ranges::all_of(states, [](uint64_t state) { return state == kRansLowest; });
  check(began && word == end, "entropy coder does not end where it began");
}

/// The symbols of a block.
template <class Symbols>
Symbols symbols_of(Symbols symbols, int64_t block, int bits) {
  const auto begin = static_cast<size_t>(block) << bits;
  const bool last = block + 1 == kernels::rans_blocks(std::ssize(symbols), bits);
  return symbols.subspan(begin, last ? symbols.size() - begin : size_t{1} << bits);
}

}  // namespace

void append_rans(std::span<const uint16_t> symbols, std::vector<std::byte>& bytes) {
  const auto counts = counts_of(symbols);
  const auto frequencies = kernels::rans_frequencies(counts, symbols.size());
  append_frequencies(frequencies, bytes);
  std::vector<EncodedSymbol> table;
  uint64_t start = 0;
  for (const uint64_t frequency : frequencies) {
    table.emplace_back(frequency, start);
    start += frequency;
  }
  std::vector<Block> blocks;
  const int bits = block_bits(counts, symbols.size());
  if (!kernels::is_short_rans(symbols.size())) append_value(bytes, static_cast<uint8_t>(bits));
  if (bits == 0) {
    blocks.push_back(encode_block<1>(symbols, table));
  } else {
    blocks.resize(static_cast<size_t>(kernels::rans_blocks(std::ssize(symbols), bits)));
    parallel_for(0, std::ssize(blocks), 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        blocks[static_cast<size_t>(b)] = encode_block<kRansStreams>(symbols_of(symbols, b, bits), table);
    });
    for (const Block& block : blocks) append_value(bytes, static_cast<uint32_t>(block.words.size()));
  }
  for (const Block& block : blocks) {
    append_values<uint64_t>(bytes, block.states);
    append_values<uint32_t>(bytes, block.words);
  }
}

void read_rans(std::span<const std::byte> bytes, uint32_t end, std::span<uint16_t> symbols) {
  ByteReader reader(bytes);
  const DecodedSymbols table(read_frequencies(reader, end));
  const int bits = kernels::is_short_rans(symbols.size()) ? 0 : reader.value<uint8_t>();
  if (bits == 0) return decode_block<1>(reader.rest(), table, symbols);
  check(bits >= kLeastRansBlockBits && bits < 63 && kernels::rans_blocks(std::ssize(symbols), bits) >= 1,
        "entropy coder's blocks have 2^", bits, " symbols, expected 2^", kLeastRansBlockBits, " or more, and at most ",
        symbols.size());
  std::vector<uint32_t> lengths(static_cast<size_t>(kernels::rans_blocks(std::ssize(symbols), bits)));
  reader.values(std::span(lengths));
  std::vector<std::span<const std::byte>> blocks;
  for (const uint32_t words : lengths)
    blocks.push_back(reader.take(kRansStreams * sizeof(uint64_t) + words * sizeof(uint32_t)));
  check(reader.empty(), "message goes on after its last code word");
  parallel_for(0, std::ssize(blocks), 1, [&](int64_t begin, int64_t last) {
    for (int64_t b = begin; b < last; ++b)
      decode_block<kRansStreams>(blocks[static_cast<size_t>(b)], table, symbols_of(symbols, b, bits));
  });
}

}  // namespace tern
