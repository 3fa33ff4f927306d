#include "tern/kernels/entropy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <queue>
#include <utility>

#include "tern/core/error.h"
#include "tern/kernels/entropy_arithmetic.h"

namespace tern::kernels {
namespace {

using Bytes = std::vector<uint8_t>;

template <class T>
void append(Bytes& bytes, T value) {
  const auto at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

/// Reads a code from its front.
struct Reader {
  const char* operation;
  std::span<const uint8_t> bytes;
  size_t bits = 0;  // read from the first byte, highest first

  template <class T>
  T value() {
    check(sizeof(T) <= bytes.size(), operation, ": a code ends early");
    T result;
    std::memcpy(&result, bytes.data(), sizeof result);
    bytes = bytes.subspan(sizeof result);
    return result;
  }
  uint32_t bit() {
    check(bits < 8 * bytes.size(), operation, ": a code ends early");
    const uint32_t byte = bytes[bits / 8];
    return byte >> (7 - bits++ % 8) & 1u;
  }
  /// Throws unless only the zeros of the last byte are left.
  void finish() {
    check((bits + 7) / 8 == bytes.size(), operation, ": a code goes on after its last word");
    while (bits % 8 != 0) check(bit() == 0, operation, ": a code ends in bits that are not zero");
  }
};

Bytes elias_bytes(std::span<const uint32_t> codes) {
  /// Calls put(code word) for each part of a form but its front.
  const auto each_word = [&](bool is_dense, const auto& put) {
    uint64_t gap = 0;
    for (const uint32_t code : codes) {
      put(elias_gap(is_dense, code, ++gap));
      put(elias_level(is_dense, code));
      if (code != 0) gap = 0;
    }
  };
  const auto nonzero = static_cast<uint64_t>(std::ssize(codes) - std::ranges::count(codes, 0u));
  int64_t lengths[2];
  for (const bool is_dense : {false, true}) {
    int64_t& length = lengths[is_dense];
    length = elias_front(is_dense, nonzero).length;
    each_word(is_dense, [&](const BitCode& word) { length += word.length; });
  }
  const bool is_dense = lengths[1] < lengths[0];
  Bytes bytes((static_cast<size_t>(lengths[is_dense]) + 7) / 8);
  size_t bit = 0;
  const auto put = [&](const BitCode& word) {
    for (int left = word.length; left-- > 0; ++bit)
      bytes[bit / 8] = static_cast<uint8_t>(bytes[bit / 8] | (word.bits >> left & 1u) << (7 - bit % 8));
  };
  put(elias_front(is_dense, nonzero));
  each_word(is_dense, put);
  return bytes;
}

Bytes rans_bytes(std::span<const uint32_t> codes) {
  std::vector<uint64_t> counts;
  for (const uint32_t code : codes) {
    counts.resize(std::max<size_t>(counts.size(), symbol_of_code(code) + size_t{1}));
    ++counts[symbol_of_code(code)];
  }
  const auto frequencies = rans_frequencies(counts, codes.size());
  Bytes bytes;
  append(bytes, static_cast<uint16_t>(frequencies.size()));
  for (const uint32_t frequency : frequencies)
    for (int byte = 0; byte < rans_frequency_bytes(frequency); ++byte)
      bytes.push_back(rans_frequency_byte(frequency, byte));
  uint64_t entropy = 0;
  for (const uint64_t count : counts) entropy += entropy_part(count, codes.size());
  const int bits = rans_block_bits(entropy, codes.size());
  if (!is_short_rans(codes.size())) append(bytes, static_cast<uint8_t>(bits));
  std::vector<uint64_t> starts(frequencies.size());
  std::exclusive_scan(frequencies.begin(), frequencies.end(), starts.begin(), uint64_t{0});
  const auto blocks = static_cast<size_t>(rans_blocks(std::ssize(codes), bits));
  const size_t streams = bits == 0 ? 1 : kRansStreams;
  Bytes lengths, rest;
  for (size_t block = 0; block < blocks; ++block) {
    const size_t begin = block << bits;
    std::array<uint64_t, kRansStreams> states;
    states.fill(kRansLowest);
    std::vector<uint32_t> words;  // from the last to the first
    for (size_t i = block + 1 == blocks ? codes.size() : (block + 1) << bits; i-- > begin;) {
      const uint32_t symbol = symbol_of_code(codes[i]);
      const uint64_t frequency = frequencies[symbol];
      uint64_t& x = states[(i - begin) % streams];
      if (x >= frequency << (63 - kRansBits)) {
        words.push_back(static_cast<uint32_t>(x));
        x >>= 32;
      }
      x = x / frequency * kRansTotal + x % frequency + starts[symbol];
    }
    append(lengths, static_cast<uint32_t>(words.size()));
    for (size_t stream = 0; stream < streams; ++stream) append(rest, states[stream]);
    for (; !words.empty(); words.pop_back()) append(rest, words.back());
  }
  if (bits != 0) bytes.insert(bytes.end(), lengths.begin(), lengths.end());
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}

void read_rans(Reader& reader, int64_t levels, std::span<uint32_t> codes) {
  const auto count = reader.value<uint16_t>();
  check(count <= 2 * levels + 1, "entropy_unpack: a table has ", count, " symbols, expected at most ", 2 * levels + 1);
  std::vector<uint32_t> symbol_at, frequencies(count), starts(count);
  for (uint32_t symbol = 0; symbol < count; ++symbol) {
    uint32_t byte = 0x80;
    for (int shift = 0; shift <= 14 && (byte & 0x80u) != 0; shift += 7) {
      byte = reader.value<uint8_t>();
      frequencies[symbol] |= (byte & 0x7fu) << shift;
    }
    starts[symbol] = static_cast<uint32_t>(symbol_at.size());
    check(symbol_at.size() + frequencies[symbol] <= kRansTotal,
          "entropy_unpack: a table's frequencies add up to more than ", kRansTotal);
    symbol_at.insert(symbol_at.end(), frequencies[symbol], symbol);
  }
  check(symbol_at.size() == kRansTotal, "entropy_unpack: a table's frequencies add up to ", symbol_at.size(),
        ", expected ", kRansTotal);
  const int bits = is_short_rans(codes.size()) ? 0 : reader.value<uint8_t>();
  check(bits == 0 || (bits >= kLeastRansBlockBits && bits < 63 && codes.size() >> bits != 0),
        "entropy_unpack: blocks have 2^", bits, " symbols of ", codes.size());
  const auto blocks = static_cast<size_t>(rans_blocks(std::ssize(codes), bits));
  const size_t streams = bits == 0 ? 1 : kRansStreams;
  for (size_t block = 0; bits != 0 && block < blocks; ++block)
    reader.value<uint32_t>();  // all blocks are read in order
  for (size_t block = 0; block < blocks; ++block) {
    std::array<uint64_t, kRansStreams> states{};
    for (size_t stream = 0; stream < streams; ++stream) states[stream] = reader.value<uint64_t>();
    const size_t begin = block << bits, end = block + 1 == blocks ? codes.size() : (block + 1) << bits;
    for (size_t i = begin; i < end; ++i) {
      uint64_t& x = states[(i - begin) % streams];
      const auto slot = static_cast<uint32_t>(x % kRansTotal), symbol = symbol_at[slot];
      x = frequencies[symbol] * (x >> kRansBits) + slot - starts[symbol];
      if (x < kRansLowest) x = x << 32 | reader.value<uint32_t>();
      codes[i] = code_of_symbol(symbol);
    }
    check(std::ranges::all_of(std::span(states).first(streams), [](uint64_t state) { return state == kRansLowest; }),
          "entropy_unpack: a code does not end with the states that it began with");
  }
  reader.finish();
}

std::vector<uint32_t> codes_in(const uint8_t* planes, int64_t numel, int bits) {
  std::vector<uint32_t> codes;
  for (int64_t i = 0; i < numel; ++i) codes.push_back(code_at(planes, numel, bits, i));
  return codes;
}

void read_elias(Reader& reader, int64_t levels, std::span<uint32_t> codes) {
  const bool fits = read_elias_codes([&] { return reader.bit(); }, std::ssize(codes),
                                     [&](int64_t i, uint32_t code) {
                                       check(code / 2 <= levels, reader.operation, ": a code holds level ", code / 2,
                                             ", beyond ", levels);
                                       codes[static_cast<size_t>(i)] = code;
                                     });
  check(fits, reader.operation, ": a code goes beyond element ", codes.size());
  reader.finish();
}

void write_planes(std::span<const uint32_t> codes, int bits, uint8_t* to) {
  const auto numel = std::ssize(codes);
  std::fill_n(to, code_bytes(numel, bits), uint8_t{0});
  for (int64_t i = 0; i < numel; ++i)
    for (int bit = 0; bit < bits; ++bit) {
      uint8_t& byte = to[codec_plane(numel, bits, i / kCodecGroup, bit).at + i % kCodecGroup / 8];
      byte = static_cast<uint8_t>(byte | (codes[static_cast<size_t>(i)] >> bit & 1u) << (i % 8));
    }
}

void check_message(const char* operation, std::span<const PackedTensor> message, int64_t levels, const Tensor& bytes) {
  check(levels >= 1 && levels <= kMostLevels, operation, ": ", levels, " levels, expected 1 to ", kMostLevels);
  check(bytes.dtype() == DType::u8, operation, ": bytes are ", bytes.dtype(), ", expected u8");
  for (const auto& [numel, codes, prefix] : message) {
    const int64_t expected = code_bytes(numel, code_bits(levels));
    check(numel < int64_t{1} << 32, operation, ": a tensor has ", numel, " elements, expected fewer than 2^32");
    check(codes.dtype() == DType::u8 && codes.numel() == expected && codes.device() == bytes.device(), operation,
          ": codes are ", codes.dtype(), " ", codes.shape(), " on ", codes.device(), ", expected u8 [", expected,
          "] on ", bytes.device());
    check(prefix.dtype() == DType::u8 && prefix.device() == bytes.device() && (numel != 0 || prefix.numel() == 0),
          operation, ": a prefix is ", prefix.dtype(), " ", prefix.shape(), " on ", prefix.device(),
          ", expected u8 on ", bytes.device(), ", and none for a tensor without elements");
  }
}

}  // namespace

void check_packing(const char* operation, std::span<const PackedTensor> message, int64_t levels, const Tensor& bytes,
                   const Tensor& lengths, int64_t (*most)(int64_t numel, int64_t levels)) {
  check_message(operation, message, levels, bytes);
  int64_t room = 0;
  for (const auto& [numel, codes, prefix] : message) room += prefix.numel() + most(numel, levels);
  check(bytes.numel() >= room, operation, ": bytes have room for ", bytes.numel(), ", expected ", room);
  check(lengths.dtype() == DType::i64 && lengths.numel() == std::ssize(message) && lengths.device() == bytes.device(),
        operation, ": lengths are ", lengths.dtype(), " ", lengths.shape(), " on ", lengths.device(),
        ", expected i64 [", message.size(), "] on ", bytes.device());
}

void check_unpacking(const char* operation, std::span<const PackedTensor> message, int64_t levels, const Tensor& bytes,
                     std::span<const int64_t> lengths) {
  check_message(operation, message, levels, bytes);
  check(lengths.size() == message.size(), operation, ": ", lengths.size(), " lengths for ", message.size(), " tensors");
  int64_t all = 0;
  for (size_t i = 0; i < message.size(); ++i) {
    const auto& [numel, codes, prefix] = message[i];
    check(numel == 0 ? lengths[i] == 0 : lengths[i] > prefix.numel(), operation, ": a tensor of ", numel,
          " elements has ", lengths[i], " bytes, ", prefix.numel(), " of them before its code");
    all += lengths[i];
  }
  check(bytes.numel() == all, operation, ": ", bytes.numel(), " bytes, expected ", all);
}

std::vector<uint32_t> rans_frequencies(std::span<const uint64_t> counts, uint64_t all) {
  std::vector<uint32_t> frequencies(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) frequencies[i] = counts[i] == 0 ? 0 : rans_share(counts[i], all);
  const auto total = std::accumulate(frequencies.begin(), frequencies.end(), uint64_t{0});
  if (total < kRansTotal) *std::ranges::max_element(frequencies) += static_cast<uint32_t>(kRansTotal - total);
  if (total <= kRansTotal) return frequencies;
  std::priority_queue<std::pair<uint32_t, int64_t>> largest;  // frequency, and minus the symbol
  for (size_t i = 0; i < frequencies.size(); ++i) largest.emplace(frequencies[i], -static_cast<int64_t>(i));
  for (uint64_t left = total; left > kRansTotal; --left) {
    const auto [frequency, symbol] = largest.top();
    largest.pop();
    largest.emplace(frequency - 1, symbol);
    --frequencies[static_cast<size_t>(-symbol)];
  }
  return frequencies;
}

std::vector<uint8_t> entropy_code(const uint8_t* codes, int64_t numel, int64_t levels) {
  const int bits = code_bits(levels);
  const std::vector<uint32_t> all = codes_in(codes, numel, bits);
  Bytes best = rans_bytes(all);
  EntropyPacking packing = EntropyPacking::rans;
  if (numel < kEliasElements)
    if (Bytes elias = elias_bytes(all); elias.size() < best.size()) {
      best = std::move(elias);
      packing = EntropyPacking::elias;
    }
  if (code_bytes(numel, bits) <= std::ssize(best)) {
    best.assign(codes, codes + code_bytes(numel, bits));
    packing = EntropyPacking::planes;
  }
  best.insert(best.begin(), static_cast<uint8_t>(packing));
  return best;
}

std::vector<uint8_t> elias_code(const uint8_t* codes, int64_t numel, int64_t levels) {
  return elias_bytes(codes_in(codes, numel, code_bits(levels)));
}

void read_entropy_code(std::span<const uint8_t> code, int64_t numel, int64_t levels, uint8_t* codes) {
  Reader reader{"entropy_unpack", code};
  const int bits = code_bits(levels);
  const auto packing = reader.value<EntropyPacking>();
  std::vector<uint32_t> all(static_cast<size_t>(numel));
  switch (packing) {
    case EntropyPacking::planes:
      check(std::ssize(reader.bytes) == code_bytes(numel, bits), "entropy_unpack: planes have ", reader.bytes.size(),
            " bytes, expected ", code_bytes(numel, bits));
      std::ranges::copy(reader.bytes, codes);
      return;
    case EntropyPacking::elias: read_elias(reader, levels, all); break;
    case EntropyPacking::rans: read_rans(reader, levels, all); break;
    default: fail({"entropy_unpack: a code has packing ", static_cast<int>(packing), ", expected 0 to 2"});
  }
  write_planes(all, bits, codes);
}

void read_elias_code(std::span<const uint8_t> code, int64_t numel, int64_t levels, uint8_t* codes) {
  Reader reader{"elias_unpack", code};
  std::vector<uint32_t> all(static_cast<size_t>(numel));
  read_elias(reader, levels, all);
  write_planes(all, code_bits(levels), codes);
}

}  // namespace tern::kernels
