#include <vector>

#include "tern/kernels/cuda/entropy.h"
#include "tern/kernels/entropy.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

using namespace tern::kernels;

constexpr int kLookups = kThreads, kLookupBits = 8;
static_assert(kLookups << kLookupBits == kRansTotal);

/// A symbol has the slots from `start` on.
struct RansRange {
  uint32_t start, frequency;
};

/// A rANS code, as the kernel that reads its table leaves it.
struct RansTable {
  int bits;
  uint32_t count;             // of symbols
  int64_t rest;               // the first byte behind the table
  uint32_t lookup[kLookups];  // the symbol of slot i << kLookupBits
};

/// A tensor's entropy code with its prefix, and what becomes of it.
struct Unpacked {
  const uint8_t* bytes;
  uint8_t *codes, *prefix;
  int64_t length, numel, prefix_bytes;
  RansTable* table;
  RansRange* ranges;

  __device__ const uint8_t* code() const { return bytes + prefix_bytes + 1; }  // behind the packing
  __device__ const uint8_t* end() const { return bytes + length; }
  /// Some bytes of the code, or zero if they are beyond its end.
  __device__ uint32_t load(const uint8_t* from, int count) const {
    return end() - from >= count ? load_bytes(from, count) : 0;
  }
  __device__ uint64_t load_state(const uint8_t* from) const {
    return load(from, 4) | uint64_t{load(from + 4, 4)} << 32;
  }
  __device__ EntropyPacking packing() const { return static_cast<EntropyPacking>(bytes[prefix_bytes]); }
};
using Table = ItemTable<Unpacked>;

/// One block reads the table of a rANS code.
__global__ void __launch_bounds__(kThreads) open_kernel(uint32_t symbols, const __grid_constant__ Table table) {
  const Unpacked& of = table.place().entry;
  if (of.packing() != EntropyPacking::rans) return;
  __shared__ uint32_t count;
  if (threadIdx.x == 0) {
    const uint8_t* next = of.code();
    count = std::min(of.load(next, 2), symbols);
    next += 2;
    uint32_t start = 0;
    for (uint32_t symbol = 0; symbol < count; ++symbol) {
      uint32_t frequency = 0, byte = 0x80;
      for (int shift = 0; (byte & 0x80u) != 0 && shift <= 14; shift += 7) {
        byte = of.load(next++, 1);
        frequency |= (byte & 0x7fu) << shift;
      }
      of.ranges[symbol] = {start, frequency};
      start += frequency;
    }
    const uint32_t bits = is_short_rans(static_cast<uint64_t>(of.numel)) ? 0 : of.load(next++, 1);
    of.table->bits = bits >= kLeastRansBlockBits && bits < 63 && of.numel >> bits != 0 ? static_cast<int>(bits) : 0;
    of.table->count = count;
    of.table->rest = next - of.code();
  }
  __syncthreads();
  const uint32_t slot = threadIdx.x << kLookupBits;
  uint32_t low = 0, high = count;  // the symbol is `low` or a later one
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (of.ranges[middle].start <= slot ? low : high) = middle;
  }
  of.table->lookup[threadIdx.x] = low;
}

/// Takes the symbol of state x from it. The state can then be too small.
__device__ uint32_t take_symbol(const Unpacked& of, uint64_t& x) {
  const auto slot = static_cast<uint32_t>(x & (kRansTotal - 1));
  uint32_t symbol = of.table->lookup[slot >> kLookupBits];
  RansRange range = of.ranges[symbol];
  while (slot - range.start >= range.frequency && symbol + 1 < of.table->count) range = of.ranges[++symbol];
  x = range.frequency * (x >> kRansBits) + slot - range.start;
  return symbol;
}

/// A warp decodes a block, whose streams are its lanes.
__device__ void decode_streams(const Unpacked& of, int bits, int64_t block) {
  const int block_bits = of.table->bits;
  const uint8_t* next = of.code() + of.table->rest;
  int64_t words = 0;
  for (int64_t b = lane_id(); b < block; b += kWarp) words += of.load(next + 4 * b, 4);
  words = fold_group<kWarp>(words, Sum{});
  next += 4 * rans_blocks(of.numel, block_bits) + 8 * kRansStreams * block + 4 * words;
  uint64_t x = of.load_state(next + 8 * lane_id());
  next += 8 * kRansStreams;
  const RansBlock elements(of.numel, block_bits, block);
  for (int64_t group = elements.first_group(); group <= elements.last_group(); ++group) {
    const bool exists = group * kWarp + lane_id() < elements.end;
    const uint32_t code = exists ? code_of_symbol(take_symbol(of, x)) : 0;
    const bool is_empty = exists && x < kRansLowest;
    const uint32_t ballot = __ballot_sync(~0u, is_empty);
    if (is_empty) x = x << 32 | of.load(next + 4 * votes_before(ballot), 4);
    next += 4 * __popc(ballot);
    store_codes(of.codes, of.numel, bits, group, code);
  }
}

/// The first lane decodes the only stream. The others store its symbols.
__device__ void decode_stream(const Unpacked& of, int bits) {
  __shared__ uint32_t codes[kWarp];
  const uint8_t* next = of.code() + of.table->rest;
  uint64_t x = of.load_state(next);
  next += 8;
  const uint32_t likely = of.table->lookup[0];
  if (of.ranges[likely].frequency == kRansTotal) {  // no other symbol occurs
    for (int64_t first = 0; first < of.numel; first += kWarp)
      store_codes(of.codes, of.numel, bits, first / kWarp, first + lane_id() < of.numel ? code_of_symbol(likely) : 0);
    return;
  }
  for (int64_t first = 0; first < of.numel; first += kWarp) {
    codes[lane_id()] = 0;
    __syncthreads();
    if (lane_id() == 0)
      for (int i = 0; i < kWarp && first + i < of.numel; ++i) {
        codes[i] = code_of_symbol(take_symbol(of, x));
        if (x >= kRansLowest) continue;
        x = x << 32 | of.load(next, 4);
        next += 4;
      }
    __syncthreads();
    store_codes(of.codes, of.numel, bits, first / kWarp, codes[lane_id()]);
    __syncthreads();
  }
}

/// The first lane reads the code. Only short tensors have Elias codes.
__device__ void decode_elias(const Unpacked& of, int bits) {
  __shared__ uint32_t codes[kEliasElements];
  for (int i = lane_id(); i < kEliasElements; i += kWarp) codes[i] = 0;
  __syncthreads();
  if (lane_id() == 0) {
    int64_t next = 0;
    read_elias_codes(
        [&] {
          const uint32_t byte = of.load(of.code() + next / 8, 1);
          return byte >> (7 - next++ % 8) & 1u;
        },
        of.numel, [&](int64_t i, uint32_t code) { codes[i] = code; });
  }
  __syncthreads();
  for (int64_t first = 0; first < of.numel; first += kWarp)
    store_codes(of.codes, of.numel, bits, first / kWarp, codes[first + lane_id()]);
}

__global__ void __launch_bounds__(kWarp) decode_kernel(int bits, const __grid_constant__ Table table) {
  const auto place = table.place();
  const Unpacked& of = place.entry;
  const int64_t block = place.block, blocks = entropy_blocks(of.numel);
  copy_share(of.prefix, of.bytes, of.prefix_bytes, block, blocks);
  switch (of.packing()) {
    case EntropyPacking::planes:
      return copy_share(of.codes, of.code(), std::min<int64_t>(of.end() - of.code(), code_bytes(of.numel, bits)), block,
                        blocks);
    case EntropyPacking::elias:
      if (of.numel <= kEliasElements) decode_elias(of, bits);
      return;
    case EntropyPacking::rans:
      if (block >= rans_blocks(of.numel, of.table->bits)) return;
      if (of.table->bits == 0) return decode_stream(of, bits);
      return decode_streams(of, bits, block);
  }
}

void entropy_unpack(std::span<const PackedTensor> message, int64_t levels, const Tensor& bytes,
                    std::span<const int64_t> lengths) {
  const char* const operation = "entropy_unpack";
  check_unpacking(operation, message, levels, bytes, lengths);
  const Device device = bytes.device();
  const int bits = code_bits(levels);
  const int64_t symbols = 2 * levels + 1, tensors = std::ssize(message);
  const auto memory = [&](int64_t count) { return Tensor::empty({count}, {.dtype = DType::u8, .device = device}); };
  const Tensor tables = memory(tensors * static_cast<int64_t>(sizeof(RansTable))),
               ranges = memory(tensors * symbols * static_cast<int64_t>(sizeof(RansRange)));
  std::vector<Unpacked> entries;
  const uint8_t* next = bytes.data<uint8_t>();
  for (size_t i = 0; i < message.size(); next += lengths[i++]) {
    const auto& [numel, codes, prefix] = message[i];
    if (numel == 0) continue;
    entries.push_back({next, codes.data<uint8_t>(), prefix.data<uint8_t>(), lengths[i], numel, prefix.numel(),
                       reinterpret_cast<RansTable*>(tables.data<uint8_t>()) + i,
                       reinterpret_cast<RansRange*>(ranges.data<uint8_t>()) + static_cast<int64_t>(i) * symbols});
  }
  const std::span<const Unpacked> all = entries;
  for_each_table(
      all, [](const Unpacked&) -> int64_t { return 1; },
      [&](const Table& table) {
        launch(operation, device, table.grid(), open_kernel, static_cast<uint32_t>(symbols), table);
      });
  for_each_table(
      all, [](const Unpacked& of) { return entropy_blocks(of.numel); },
      [&](const Table& table) {
        launch(operation, device, {.blocks = table.grid().blocks, .threads = dim3(kWarp)}, decode_kernel, bits, table);
      });
}

}  // namespace

void provide_entropy_unpack() { kernels::entropy_unpack.provide(Target::cuda, entropy_unpack); }

}  // namespace tern::cuda
