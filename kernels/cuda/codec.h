#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "tern/kernels/codec.h"
#include "tern/kernels/codec_arithmetic.h"
#include "tern/kernels/cuda/indexing.h"
#include "tern/kernels/cuda/item_table.h"
#include "tern/kernels/cuda/launch.h"

namespace tern::cuda {

/// The buckets of one gradient and the target of their sums: rows of statistics, or units if `statistics` is null. With
/// `whole`, the second sum is that of the products of its elements and those of g, and the units are codec_nearest.
struct BucketSums {
  const float* g;
  int64_t numel, width;  ///< number of elements, and elements per bucket
  double* statistics;
  float* units;
  const float* whole = nullptr;
  double* partials = nullptr;  ///< scratch
  int64_t first_counter = 0;   ///< of the blocks that have summed their part of a bucket
  int64_t blocks = 1;          ///< of each bucket that is longer than a run
};

/// The most buckets of a launch that several blocks share. Each of the others has one block: so many blocks keep any
/// device busy.
inline constexpr int64_t kMostSharedBuckets = 512;

/// Sums every bucket in the order of codec_arithmetic.h. `rule` is used only for units. One launch for each 128
/// gradients.
void sum_buckets(const char* operation, Device device, std::span<BucketSums> gradients, const kernels::UnitRule& rule,
                 int64_t most_shared = kMostSharedBuckets);
/// The same for gradients that all have `whole`.
void sum_products(const char* operation, Device device, std::span<BucketSums> gradients);

/// A warp codes a tile of two chunks at a time. Lane i has element i of each group in registers.
inline constexpr int kChunkGroups = kernels::kCodecChunk / kernels::kCodecGroup, kTileGroups = 2 * kChunkGroups;
inline constexpr int kTile = kTileGroups * kWarp, kTilesPerBlock = kThreads / kWarp;
/// The number of blocks that a multiprocessor should hold at once, so that some blocks load while others compute. This
/// leaves 80 registers per thread.
inline constexpr int kResidentBlocks = 3;
static_assert(kernels::kCodecGroup == kWarp);

inline int64_t tile_blocks(int64_t numel) {
  constexpr int64_t kBlockElements = int64_t{kTile} * kTilesPerBlock;
  return (numel + kBlockElements - 1) / kBlockElements;
}

__device__ inline int lane_id() { return static_cast<int>(threadIdx.x) % kWarp; }

/// Calls body(j, e) for this lane's element e of each group j of the tile that begins at `first`, if e < `numel`.
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

/// Number of elements in a bucket, the same for all buckets of a gradient.
struct BucketWidth {
  int64_t width = 1;
  Divider narrow;  ///< divides by the width if buckets are shorter than a tile

  BucketWidth() = default;
  explicit BucketWidth(int64_t elements)
      : width(elements), narrow(elements < kTile ? static_cast<uint32_t>(elements) : 1) {}

  /// `place` < 2 · kTile is the distance of an element from the start of a bucket. Returns how many buckets after that
  /// bucket the element lies.
  __device__ int buckets_in(int64_t place) const {
    if (width >= kTile) return place >= width ? 1 : 0;
    return static_cast<int>(narrow.quotient(static_cast<uint32_t>(place)));
  }
};

/// values[j] = of(bucket of this lane's element of group j). If the tile has several buckets, each lane computes the
/// value of one bucket and passes it on. All threads of the warp must call it together.
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

/// Transposes a matrix of bits. Lane i holds row i (Warren, "Hacker's Delight", 7-3).
__device__ inline uint32_t transpose_bits(uint32_t row) {
  uint32_t mask = 0x0000ffffu;
  for (int k = kWarp / 2; k > 0; k /= 2, mask ^= mask << k) {
    const uint32_t other = __shfl_xor_sync(~0u, row, k);
    row = (lane_id() & k) != 0 ? (row & ~mask) | (other & ~mask) >> k : (row & mask) | (other & mask) << k;
  }
  return row;
}

/// Each code takes a slot of `Slot` bits, so that the codes of one lane in 32 / Slot groups fill a word. The transposed
/// words of the warp are the planes of the groups: lane k·Slot + b holds plane b of group k.
template <int Slot>
struct Slots {
  static constexpr int kBits = Slot;
  static constexpr int kGroups = kWarp / Slot;          ///< groups in a word
  static constexpr int kWords = kTileGroups / kGroups;  ///< words of a tile
  static constexpr uint32_t kCode = (1u << Slot) - 1;

  /// The place of this lane's plane in word `word` of the tile whose first group is `group`.
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

/// The number of lanes before this one that have a bit in `ballot`.
__device__ inline int votes_before(uint32_t ballot) { return __popc(ballot & ((1u << lane_id()) - 1)); }

/// The sum of the values of the threads before this one. All threads of the block must call it together.
__device__ inline uint64_t sum_before(uint64_t value) {
  constexpr int kWarps = kThreads / kWarp;
  __shared__ uint64_t of_warp[kWarps];
  const int lane = lane_id(), warp = static_cast<int>(threadIdx.x) / kWarp;
  uint64_t sum = value;  // of this warp's lanes up to this one
  for (int step = 1; step < kWarp; step *= 2) {
    const uint64_t before = __shfl_sync(~0u, sum, (lane - step) & (kWarp - 1));
    if (lane >= step) sum += before;
  }
  __syncthreads();
  if (lane == kWarp - 1) of_warp[warp] = sum;
  __syncthreads();
  for (int w = 0; w < warp; ++w) sum += of_warp[w];
  return sum - value;
}

/// counts[i] = the sum of the counts before it. All threads of one block must call it together.
template <class Count>
__device__ void sum_counts_before(Count* counts, int64_t n) {
  const int64_t each = (n + kThreads - 1) / kThreads;
  const int64_t begin = std::min(n, threadIdx.x * each), end = std::min(n, begin + each);
  Count own = 0;
  for (int64_t i = begin; i < end; ++i) own += counts[i];
  auto before = static_cast<Count>(sum_before(own));
  for (int64_t i = begin; i < end; ++i) {
    const Count count = counts[i];
    counts[i] = before;
    before += count;
  }
}

}  // namespace tern::cuda
