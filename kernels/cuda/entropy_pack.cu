#include <type_traits>
#include <vector>

#include "tern/kernels/cuda/entropy.h"
#include "tern/kernels/entropy.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

using namespace tern::kernels;

__extension__ using Uint128 = unsigned __int128;

/// A symbol of frequency f that starts at s is added to a state x as x ← (x / f)·kRansTotal + x % f + s, with a product
/// in place of the quotient. It is exact below 2^63 (Granlund and Montgomery, PLDI 1994).
struct alignas(16) RansSymbol {
  RansSymbol() = default;
  __device__ RansSymbol(uint32_t frequency, uint32_t start)
      : reciprocal(~uint64_t{0}),
        bias(start + kRansTotal - 1),  // for f = 1, because the product gives x - 1 for x / 1
        complement(static_cast<uint16_t>(kRansTotal - frequency)),
        shift(0) {
    if (frequency < 2) return;
    const int bits = std::bit_width(frequency - 1);
    const uint64_t power = uint64_t{1} << (bits + 31), rest = power % frequency << 32;
    reciprocal = (power / frequency << 32) + rest / frequency + (rest % frequency != 0 ? 1 : 0);
    shift = static_cast<uint16_t>(bits - 1);
    bias = start;
  }
  /// No other symbol occurs. Then it changes no state.
  __device__ bool is_only() const { return complement == 0; }
  /// A state from here on first gives up its lower half.
  __device__ uint64_t limit() const { return uint64_t{kRansTotal - complement} << (63 - kRansBits); }
  __device__ uint64_t next(uint64_t x) const {
    const auto quotient = static_cast<uint64_t>(Uint128{x} * reciprocal >> 64) >> shift;
    return x + bias + quotient * complement;
  }

  uint64_t reciprocal;
  uint32_t bias;
  uint16_t complement, shift;
};

/// What a tensor's code will be.
struct Plan {
  int bits, header_bytes;  // of rANS: log2 of the length of blocks, and the bytes before the lengths of blocks
  EntropyPacking packing;
  bool is_dense;  // of Elias codes
  uint32_t nonzero;
};

/// A tensor, and memory for its code in parts.
struct Packed {
  const uint8_t *codes, *prefix;
  int64_t numel, prefix_bytes, number;  // `number` is its index among the lengths
  uint32_t* counts;                     // of each symbol; then their frequencies
  RansSymbol* symbols;
  uint8_t* header;
  Plan* plan;
  uint64_t* states;               // of all streams of all blocks
  uint32_t *word_counts, *words;  // of each block; a block's words are at the end of its room

  /// A symbol moves at most 16 bits.
  static constexpr int64_t kSpareWords = kRansStreams + 1;
  static int64_t room_for(int64_t numel) { return numel / 2 + kSpareWords * entropy_blocks(numel) + 1; }
  /// The end of a block's words.
  __device__ uint32_t* words_end(const RansBlock& of, int64_t block) const {
    return words + of.end / 2 + kSpareWords * (block + 1);
  }
  __device__ int64_t blocks() const { return rans_blocks(numel, plan->bits); }
};
using Table = ItemTable<Packed>;

constexpr int kHeldSymbols = 256, kCommonSymbols = 3;

/// Counts the symbols. Those of ternary codes are counted by votes.
__global__ void __launch_bounds__(kThreads) count_kernel(int bits, int symbols, const __grid_constant__ Table table) {
  __shared__ uint32_t held[kHeldSymbols];
  const auto place = table.place();
  const Packed& of = place.entry;
  uint32_t* const counts = symbols <= kHeldSymbols ? held : of.counts;
  for (int i = static_cast<int>(threadIdx.x); i < kHeldSymbols; i += kThreads) held[i] = 0;
  __syncthreads();
  const int64_t begin = place.block << kLeastRansBlockBits;
  const int64_t end = place.block + 1 == entropy_blocks(of.numel) ? of.numel : (place.block + 1) << kLeastRansBlockBits;
  uint32_t common[kCommonSymbols] = {};
  for (int64_t group = begin / kWarp + threadIdx.x / kWarp; group * kWarp < end; group += kThreads / kWarp) {
    uint32_t code[1];
    load_codes(of.codes, of.numel, bits, group, group, code);
    const bool exists = group * kWarp + lane_id() < end;
    const uint32_t symbol = symbol_of_code(code[0]);
#pragma unroll
    for (uint32_t s = 0; s < kCommonSymbols; ++s) common[s] += __popc(__ballot_sync(~0u, exists && symbol == s));
    if (exists && symbol >= kCommonSymbols) atomicAdd(&counts[symbol], 1u);
  }
#pragma unroll
  for (uint32_t s = 0; s < kCommonSymbols; ++s)
    if (lane_id() == 0 && common[s] != 0) atomicAdd(&counts[s], common[s]);
  __syncthreads();
  if (counts != held) return;
  for (int i = static_cast<int>(threadIdx.x); i < symbols; i += kThreads)
    if (held[i] != 0) atomicAdd(&of.counts[i], held[i]);
}

/// Adds `missing` to the largest frequency, the first of equal ones.
__device__ void raise_largest(uint32_t* frequencies, const OwnItems& own, uint32_t missing) {
  uint64_t largest = 0;
  for (int i = own.begin; i < own.end; ++i)
    largest = std::max(largest, uint64_t{frequencies[i]} << 32 | (~0u - static_cast<uint32_t>(i)));
  largest = fold_group<kThreads>(largest, [](uint64_t a, uint64_t b) { return a > b ? a : b; });
  const auto found = static_cast<int>(~0u - static_cast<uint32_t>(largest));
  if (found >= own.begin && found < own.end) frequencies[found] += missing;
}

/// Takes `surplus` from the frequencies, always 1 from the largest, the first of equal ones. So those above some level
/// fall to it, and the first of these give 1 more.
__device__ void lower_largest(uint32_t* frequencies, const OwnItems& own, uint64_t surplus) {
  const auto above = [&](uint32_t level) {
    uint64_t sum = 0;
    for (int i = own.begin; i < own.end; ++i) sum += frequencies[i] > level ? frequencies[i] - level : 0;
    return fold_group<kThreads>(sum, Sum{});
  };
  uint32_t low = 0, level = 2 * kRansTotal;  // above(low) > surplus >= above(level)
  while (level - low > 1) {
    const uint32_t middle = (low + level) / 2;
    (above(middle) > surplus ? low : level) = middle;
  }
  const uint64_t left = surplus - above(level);
  uint64_t number = 0;
  for (int i = own.begin; i < own.end; ++i) number += frequencies[i] >= level ? 1 : 0;
  number = sum_before(number);
  for (int i = own.begin; i < own.end; ++i)
    if (frequencies[i] >= level) frequencies[i] = level - (number++ < left ? 1 : 0);
}

/// One block makes the table of a tensor, the header of its rANS code, and the symbols for the encoder.
__global__ void __launch_bounds__(kThreads) table_kernel(int symbols, const __grid_constant__ Table table) {
  const Packed& of = table.place().entry;
  const auto all = static_cast<uint64_t>(of.numel);
  int count = 0;
  for (int i = static_cast<int>(threadIdx.x); i < symbols; i += kThreads)
    if (of.counts[i] != 0) count = i + 1;
  count = fold_group<kThreads>(count, [](int a, int b) { return a > b ? a : b; });
  const OwnItems own(count);
  uint64_t entropy = 0, total = 0;
  for (int i = own.begin; i < own.end; ++i) {
    if (of.counts[i] == 0) continue;
    entropy += entropy_part(of.counts[i], all);
    of.counts[i] = rans_share(of.counts[i], all);
    total += of.counts[i];
  }
  entropy = fold_group<kThreads>(entropy, Sum{});
  total = fold_group<kThreads>(total, Sum{});
  if (total < kRansTotal) raise_largest(of.counts, own, static_cast<uint32_t>(kRansTotal - total));
  if (total > kRansTotal) lower_largest(of.counts, own, total - kRansTotal);
  uint64_t start = 0, bytes = 0;
  for (int i = own.begin; i < own.end; ++i) {
    start += of.counts[i];
    bytes += static_cast<uint64_t>(rans_frequency_bytes(of.counts[i]));
  }
  start = sum_before(start);
  uint8_t* next = of.header + 3 + sum_before(bytes);
  for (int i = own.begin; i < own.end; ++i) {
    const uint32_t frequency = of.counts[i];
    of.symbols[i] = RansSymbol(frequency, static_cast<uint32_t>(start));
    start += frequency;
    for (int byte = 0; byte < rans_frequency_bytes(frequency); ++byte) *next++ = rans_frequency_byte(frequency, byte);
  }
  bytes = fold_group<kThreads>(bytes, Sum{});
  if (threadIdx.x != 0) return;
  const bool is_short = is_short_rans(all);
  *of.plan = {rans_block_bits(entropy, all), static_cast<int>(3 + bytes + (is_short ? 0 : 1)), EntropyPacking::rans,
              false, 0};
  of.header[0] = static_cast<uint8_t>(EntropyPacking::rans);
  of.header[1] = static_cast<uint8_t>(count);
  of.header[2] = static_cast<uint8_t>(count >> 8);
  if (!is_short) of.header[3 + bytes] = static_cast<uint8_t>(of.plan->bits);
}

/// Groups whose symbols are loaded at once. They do not depend on each other as states do.
constexpr int kAtOnce = 4;

/// A warp encodes a block, whose streams are its lanes. Returns the first of its words.
__device__ uint32_t* encode_streams(const Packed& of, int bits, const RansBlock& elements, uint32_t* words,
                                    uint64_t* states) {
  uint64_t x = kRansLowest;
  for (int64_t last = elements.last_group(); last >= elements.first_group(); last -= kAtOnce) {
    uint32_t codes[kAtOnce];
    load_codes(of.codes, of.numel, bits, elements.first_group(), last, codes);
    RansSymbol symbols[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) symbols[k] = of.symbols[symbol_of_code(codes[k])];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const bool exists = last - k >= elements.first_group() && (last - k) * kWarp + lane_id() < elements.end;
      const bool is_full = exists && x >= symbols[k].limit();
      const uint32_t ballot = __ballot_sync(~0u, is_full);
      words -= __popc(ballot);
      if (is_full) {
        words[votes_before(ballot)] = static_cast<uint32_t>(x);
        x >>= 32;
      }
      if (exists) x = symbols[k].next(x);
    }
  }
  states[lane_id()] = x;
  return words;
}

/// The first lane encodes the only stream. The others load its symbols.
__device__ uint32_t* encode_stream(const Packed& of, int bits, uint32_t* words, uint64_t* state) {
  __shared__ RansSymbol symbols[kWarp];
  uint64_t x = kRansLowest;
  uint32_t code[1];
  load_codes(of.codes, of.numel, bits, 0, 0, code);
  const bool one_symbol = of.symbols[symbol_of_code(__shfl_sync(~0u, code[0], 0))].is_only();
  for (int64_t group = one_symbol ? -1 : (of.numel - 1) / kWarp; group >= 0; --group) {
    load_codes(of.codes, of.numel, bits, group, group, code);
    __syncthreads();
    symbols[lane_id()] = of.symbols[symbol_of_code(code[0])];
    __syncthreads();
    if (lane_id() == 0)
      for (auto i = static_cast<int>(std::min<int64_t>(of.numel - group * kWarp, kWarp)); i-- > 0;) {
        const RansSymbol symbol = symbols[i];
        if (x >= symbol.limit()) {
          *--words = static_cast<uint32_t>(x);
          x >>= 32;
        }
        x = symbol.next(x);
      }
  }
  if (lane_id() == 0) *state = x;
  return words;
}

__global__ void __launch_bounds__(kWarp) encode_kernel(int bits, const __grid_constant__ Table table) {
  const auto place = table.place();
  const Packed& of = place.entry;
  if (place.block >= of.blocks()) return;
  const int block_bits = of.plan->bits;
  const RansBlock elements(of.numel, block_bits, place.block);
  uint32_t* const end = of.words_end(elements, place.block);
  uint64_t* const states = of.states + place.block * kRansStreams;
  const uint32_t* const first =
      block_bits == 0 ? encode_stream(of, bits, end, states) : encode_streams(of, bits, elements, end, states);
  if (lane_id() == 0) of.word_counts[place.block] = static_cast<uint32_t>(end - first);
}

/// The words of the blocks before `block`. All threads of the block must call it together.
__device__ int64_t words_before(const Packed& of, int64_t block) {
  int64_t words = 0;
  for (int64_t b = threadIdx.x; b < block; b += kThreads) words += of.word_counts[b];
  return fold_group<kThreads>(words, Sum{});
}

/// The code of element i in one of Elias' forms.
__device__ BitCode elias_code_at(const Packed& of, int bits, bool is_dense, int i) {
  const uint32_t code = code_at(of.codes, of.numel, bits, i);
  int before = i - 1;
  while (!is_dense && code != 0 && before >= 0 && code_at(of.codes, of.numel, bits, before) == 0) --before;
  return elias_gap(is_dense, code, static_cast<uint64_t>(i - before)) + elias_level(is_dense, code);
}

/// One block chooses the shortest code of a tensor.
__global__ void __launch_bounds__(kThreads)
    choose_kernel(int bits, int64_t* lengths, const __grid_constant__ Table table) {
  const Packed& of = table.place().entry;
  Plan plan = *of.plan;
  const int64_t blocks = of.blocks(), streams = plan.bits == 0 ? 1 : kRansStreams;
  int64_t best = plan.header_bytes + blocks * (8 * streams + (plan.bits == 0 ? 0 : 4)) + 4 * words_before(of, blocks);
  if (of.numel < kEliasElements) {
    int sparse = 0, dense = 0;
    for (int i = static_cast<int>(threadIdx.x); i < of.numel; i += kThreads) {
      sparse += elias_code_at(of, bits, false, i).length;
      dense += elias_code_at(of, bits, true, i).length;
      plan.nonzero += code_at(of.codes, of.numel, bits, i) != 0 ? 1 : 0;
    }
    plan.nonzero = fold_group<kThreads>(plan.nonzero, Sum{});
    sparse = fold_group<kThreads>(sparse, Sum{}) + omega_code(uint64_t{plan.nonzero} + 1).length;
    dense = fold_group<kThreads>(dense, Sum{});
    plan.is_dense = dense < sparse;
    const int64_t bytes = 1 + (1 + std::min(sparse, dense) + 7) / 8;
    if (bytes < best) {
      best = bytes;
      plan.packing = EntropyPacking::elias;
    }
  }
  if (1 + code_bytes(of.numel, bits) <= best) {
    best = 1 + code_bytes(of.numel, bits);
    plan.packing = EntropyPacking::planes;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  *of.plan = plan;
  lengths[of.number] = of.prefix_bytes + best;
}

/// One block writes the Elias code of a tensor, which is shorter than its planes.
__device__ void write_elias(const Packed& of, int bits, uint8_t* to) {
  constexpr int kBytes = static_cast<int>(code_bytes(kEliasElements, 16));
  __shared__ uint32_t words[kBytes / 4 + 1];  // the first bit of the code is the highest of the first word
  for (int i = static_cast<int>(threadIdx.x); i <= kBytes / 4; i += kThreads) words[i] = 0;
  const Plan& plan = *of.plan;
  const BitCode front = elias_front(plan.is_dense, plan.nonzero);
  const OwnItems own(static_cast<int>(of.numel));
  uint64_t own_bits = 0;
  for (int i = own.begin; i < own.end; ++i)
    own_bits += static_cast<uint64_t>(elias_code_at(of, bits, plan.is_dense, i).length);
  uint64_t at = static_cast<uint64_t>(front.length) + sum_before(own_bits);
  if (threadIdx.x == 0) put_bits(words, 0, front);
  for (int i = own.begin; i < own.end; ++i) {
    const BitCode code = elias_code_at(of, bits, plan.is_dense, i);
    put_bits(words, at, code);
    at += static_cast<uint64_t>(code.length);
  }
  const auto all = (static_cast<uint64_t>(front.length) + fold_group<kThreads>(own_bits, Sum{}) + 7) / 8;
  if (threadIdx.x == 0) *to = static_cast<uint8_t>(EntropyPacking::elias);
  for (uint64_t i = threadIdx.x; i < all; i += kThreads)
    to[1 + i] = static_cast<uint8_t>(words[i / 4] >> (24 - 8 * (i % 4)));
}

__device__ void write_rans(const Packed& of, int64_t block, uint8_t* to) {
  const int64_t blocks = of.blocks();
  if (block >= blocks) return;
  const int block_bits = of.plan->bits, streams = block_bits == 0 ? 1 : kRansStreams;
  if (block == 0) copy_share(to, of.header, of.plan->header_bytes, 0, 1);
  to += of.plan->header_bytes;
  const uint32_t count = of.word_counts[block];
  const int64_t before = words_before(of, block);
  if (block_bits != 0) {
    if (threadIdx.x == 0) store_bytes(to + 4 * block, 4, count);
    to += 4 * blocks;
  }
  to += 8 * streams * block + 4 * before;
  const uint64_t* const states = of.states + block * kRansStreams;
  for (int i = static_cast<int>(threadIdx.x); i < 2 * streams; i += kThreads)
    store_bytes(to + 4 * i, 4, static_cast<uint32_t>(states[i / 2] >> (32 * (i % 2))));
  to += 8 * streams;
  const uint32_t* const words = of.words_end(RansBlock(of.numel, block_bits, block), block) - count;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) store_bytes(to + 4 * i, 4, words[i]);
}

/// Puts the code of a tensor behind those of the tensors before it.
__global__ void __launch_bounds__(kThreads)
    place_kernel(int bits, const int64_t* lengths, uint8_t* bytes, const __grid_constant__ Table table) {
  const auto place = table.place();
  const Packed& of = place.entry;
  const int64_t blocks = entropy_blocks(of.numel);
  int64_t before = 0;
  for (int64_t i = threadIdx.x; i < of.number; i += kThreads) before += lengths[i];
  uint8_t* to = bytes + fold_group<kThreads>(before, Sum{});
  copy_share(to, of.prefix, of.prefix_bytes, place.block, blocks);
  to += of.prefix_bytes;
  switch (of.plan->packing) {
    case EntropyPacking::planes:
      if (place.block == 0 && threadIdx.x == 0) *to = static_cast<uint8_t>(EntropyPacking::planes);
      return copy_share(to + 1, of.codes, code_bytes(of.numel, bits), place.block, blocks);
    case EntropyPacking::elias: return write_elias(of, bits, to);
    case EntropyPacking::rans: return write_rans(of, place.block, to);
  }
}

void entropy_pack(std::span<const PackedTensor> message, int64_t levels, Tensor& bytes, Tensor& lengths) {
  const char* const operation = "entropy_pack";
  check_packing(operation, message, levels, bytes, lengths, most_entropy_bytes);
  const Device device = bytes.device();
  const int bits = code_bits(levels);
  const auto symbols = static_cast<int>(2 * levels + 1);
  int64_t tensors = 0, blocks = 0, words = 0;
  for (const auto& [numel, codes, prefix] : message) {
    if (numel == 0) continue;
    ++tensors;
    blocks += entropy_blocks(numel);
    words += Packed::room_for(numel);
  }
  if (tensors != std::ssize(message)) lengths.copy_from(Tensor::zeros(lengths.shape(), lengths.options()));
  if (tensors == 0) return;
  const Tensor counts = Tensor::zeros({4 * symbols * tensors}, {.dtype = DType::u8, .device = device});
  Scratch scratch(device);
  Packed next{};
  next.counts = reinterpret_cast<uint32_t*>(counts.data<uint8_t>());
  next.symbols = scratch.take<RansSymbol>(symbols * tensors);
  next.header = scratch.take<uint8_t>((4 + 3 * symbols) * tensors);
  next.plan = scratch.take<Plan>(tensors);
  next.states = scratch.take<uint64_t>(kRansStreams * blocks);
  next.word_counts = scratch.take<uint32_t>(blocks);
  next.words = scratch.take<uint32_t>(words);
  std::vector<Packed> entries;
  for (size_t i = 0; i < message.size(); ++i) {
    const auto& [numel, codes, prefix] = message[i];
    if (numel == 0) continue;
    next.codes = codes.data<uint8_t>();
    next.prefix = prefix.data<uint8_t>();
    next.numel = numel;
    next.prefix_bytes = prefix.numel();
    next.number = static_cast<int64_t>(i);
    entries.push_back(next);
    next.counts += symbols;
    next.symbols += symbols;
    next.header += 4 + 3 * symbols;
    ++next.plan;
    next.states += kRansStreams * entropy_blocks(numel);
    next.word_counts += entropy_blocks(numel);
    next.words += Packed::room_for(numel);
  }
  const auto one_each = [](const Packed&) -> int64_t { return 1; };
  const auto each_block = [](const Packed& of) { return entropy_blocks(of.numel); };
  const std::span<const Packed> all = entries;
  for_each_table(all, each_block, [&](const Table& table) {
    launch(operation, device, table.grid(), count_kernel, bits, symbols, table);
  });
  for_each_table(all, one_each,
                 [&](const Table& table) { launch(operation, device, table.grid(), table_kernel, symbols, table); });
  for_each_table(all, each_block, [&](const Table& table) {
    launch(operation, device, {.blocks = table.grid().blocks, .threads = dim3(kWarp)}, encode_kernel, bits, table);
  });
  auto* const sizes = lengths.data<int64_t>();
  for_each_table(all, one_each, [&](const Table& table) {
    launch(operation, device, table.grid(), choose_kernel, bits, sizes, table);
  });
  for_each_table(all, each_block, [&](const Table& table) {
    launch(operation, device, table.grid(), place_kernel, bits, static_cast<const int64_t*>(sizes),
           bytes.data<uint8_t>(), table);
  });
}

}  // namespace

void provide_entropy_pack() { kernels::entropy_pack.provide(Target::cuda, entropy_pack); }

}  // namespace tern::cuda
