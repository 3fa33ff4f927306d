#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "tern/kernels/codec.h"
#include "tern/kernels/codec_arithmetic.h"
#include "tern/kernels/cuda/indexing.h"
#include "tern/kernels/cuda/launch.h"

namespace tern::cuda {

/// Some tensors of a message as a kernel's argument. Each has blocks of its own in one launch, so that small ones cost
/// none.
template <class Entry>
struct ItemTable {
  static constexpr int kMost = 128;

  void add(const Entry& entry, int64_t blocks) {
    entries[count] = entry;
    first_block[count + 1] = first_block[count] + static_cast<int32_t>(blocks);
    ++count;
  }
  Grid grid() const { return {.blocks = dim3(static_cast<unsigned>(first_block[count]))}; }

  /// Whose block this is, and which of its blocks.
  struct Place {
    const Entry& entry;
    int64_t block;
  };
  __device__ Place place() const {
    const auto number = static_cast<int32_t>(blockIdx.x);
    int low = 0, high = count;  // first_block[low] <= number < first_block[high]
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (first_block[middle] <= number ? low : high) = middle;
    }
    return {entries[low], number - first_block[low]};
  }

  int count = 0;
  int32_t first_block[kMost + 1] = {};
  Entry entries[kMost];
};

/// Calls launch(table) for tables that together hold each of `entries`, with blocks_of(entry) blocks.
template <class Entry, class BlocksOf, class Launch>
void for_each_table(std::span<const Entry> entries, BlocksOf blocks_of, Launch launch) {
  while (!entries.empty()) {
    const auto some = entries.first(std::min<size_t>(entries.size(), ItemTable<Entry>::kMost));
    ItemTable<Entry> table;
    for (const Entry& entry : some) table.add(entry, blocks_of(entry));
    launch(table);
    entries = entries.subspan(some.size());
  }
}

/// One gradient's buckets and what becomes of their sums: rows of statistics, or units where `statistics` is null.
struct BucketSums {
  const float* g;
  int64_t numel, width;  ///< elements: of all, of a bucket
  double* statistics;
  float* units;
  double* partials = nullptr;  ///< scratch
};

/// Sums every bucket in the order of codec_arithmetic.h; `norm` and `levels` are those of units.
void sum_buckets(const char* operation, Device device, std::span<BucketSums> gradients, kernels::BucketNorm norm,
                 int64_t levels);

/// What a warp codes at once, two chunks: lane i has element i of each group in registers.
inline constexpr int kChunkGroups = kernels::kCodecChunk / kernels::kCodecGroup, kTileGroups = 2 * kChunkGroups;
inline constexpr int kTile = kTileGroups * kWarp, kTilesPerBlock = kThreads / kWarp;
/// Blocks that a multiprocessor is to hold at once, so that some load while others compute: 80 registers a thread.
inline constexpr int kResidentBlocks = 3;
static_assert(kernels::kCodecGroup == kWarp);

inline int64_t tile_blocks(int64_t numel) {
  constexpr int64_t kBlockElements = int64_t{kTile} * kTilesPerBlock;
  return (numel + kBlockElements - 1) / kBlockElements;
}

__device__ inline int lane_id() { return static_cast<int>(threadIdx.x) % kWarp; }

/// body(j, e) for this lane's element e of each group j of the tile that begins at `first`, as far as there are any.
template <class Body>
__device__ void for_each_group(int64_t first, int64_t numel, Body body) {
  const int64_t own = first + lane_id();
  if (first + kTile <= numel) {
#pragma unroll
    for (int j = 0; j < kTileGroups; ++j) body(j, own + j * kWarp);
  } else {
#pragma unroll
    for (int j = 0; j < kTileGroups; ++j)
      if (own + j * kWarp < numel) body(j, own + j * kWarp);
  }
}

/// Elements in a bucket, for all elements of a gradient.
struct BucketWidth {
  int64_t width = 1;
  Divider narrow;  ///< by the width, where buckets are shorter than a tile

  BucketWidth() = default;
  explicit BucketWidth(int64_t elements)
      : width(elements), narrow(elements < kTile ? static_cast<uint32_t>(elements) : 1) {}

  /// How many buckets further an element is that stands `place` < 2 · kTile elements behind the beginning of one.
  __device__ int buckets_in(int64_t place) const {
    if (width >= kTile) return place >= width ? 1 : 0;
    return static_cast<int>(narrow.quotient(static_cast<uint32_t>(place)));
  }
};

/// values[j] = of(bucket of this lane's element of group j). Lanes compute it each for one of the tile's buckets, where
/// it has several, and pass it on. All of the warp call it together.
template <class Of>
__device__ void spread(const BucketWidth& width, int64_t first, int64_t numel, Of of, float (&values)[kTileGroups]) {
  const int64_t bucket = first < width.width ? 0 : first / width.width, begun = first - bucket * width.width;
  const int last = width.buckets_in(begun + std::min<int64_t>(numel - first, kTile) - 1);
  if (last == 0) {
    const float all = of(bucket);
#pragma unroll
    for (float& value : values) value = all;
    return;
  }
#pragma unroll 1
  for (int base = 0; base <= last; base += kWarp) {
    const float mine = of(bucket + std::min(base + lane_id(), last));
#pragma unroll
    for (int j = 0; j < kTileGroups; ++j) {
      const int number = std::min(width.buckets_in(begun + j * kWarp + lane_id()), last) - base;
      const float value = __shfl_sync(~0u, mine, number);
      if (number >= 0 && number < kWarp) values[j] = value;
    }
  }
}

/// Transposes a matrix of bits of which lane i holds row i (Warren, "Hacker's Delight", 7-3).
__device__ inline uint32_t transpose_bits(uint32_t row) {
  uint32_t mask = 0x0000ffffu;
  for (int k = kWarp / 2; k > 0; k /= 2, mask ^= mask << k) {
    const uint32_t other = __shfl_xor_sync(~0u, row, k);
    row = (lane_id() & k) != 0 ? (row & ~mask) | (other & ~mask) >> k : (row & mask) | (other & mask) << k;
  }
  return row;
}

/// Codes take slots of `Slot` bits, so that those of an element in 32 / Slot groups fill a word. Transposed, the warp's
/// words are the groups' planes: lane k·Slot + b holds plane b of group k.
template <int Slot>
struct Slots {
  static constexpr int kBits = Slot;
  static constexpr int kGroups = kWarp / Slot;          ///< of a word
  static constexpr int kWords = kTileGroups / kGroups;  ///< of a tile
  static constexpr uint32_t kCode = (1u << Slot) - 1;

  /// Where this lane's plane stands, of word `word` of the tile whose first group is `group`.
  __device__ static kernels::CodecPlane plane(int64_t numel, int bits, int64_t group, int word) {
    const int bit = lane_id() % Slot;
    if (bit >= bits) return {0, 0};
    return kernels::codec_plane(numel, bits, group + word * kGroups + lane_id() / Slot, bit);
  }
};

/// Calls body(Slots<Slot>) with the narrowest slot for codes of `bits` bits.
template <class Body>
void visit_slots(int bits, Body body) {
  if (bits <= 2) return body(Slots<2>{});
  if (bits <= 4) return body(Slots<4>{});
  if (bits <= 8) return body(Slots<8>{});
  body(Slots<16>{});
}

__device__ inline uint32_t load_bytes(const uint8_t* from, int count) {
  if (count == 4 && reinterpret_cast<uintptr_t>(from) % 4 == 0) return *reinterpret_cast<const uint32_t*>(from);
  uint32_t word = 0;
  for (int i = 0; i < count; ++i) word |= uint32_t{from[i]} << (8 * i);
  return word;
}
__device__ inline void store_bytes(uint8_t* to, int count, uint32_t word) {
  if (count == 4 && reinterpret_cast<uintptr_t>(to) % 4 == 0)
    *reinterpret_cast<uint32_t*>(to) = word;
  else
    for (int i = 0; i < count; ++i) to[i] = static_cast<uint8_t>(word >> (8 * i));
}

}  // namespace tern::cuda
