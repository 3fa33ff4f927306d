#include "tern/kernels/topk.h"

#include <bit>
#include <vector>

#include "tern/kernels/cuda/codec.h"
#include "tern/kernels/cuda/reduction.h"
#include "tern/kernels/largest.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

using namespace tern::kernels;

constexpr int kWarps = kThreads / kWarp, kPerThread = 16;
constexpr int64_t kPerBlock = int64_t{kThreads} * kPerThread;

/// Bits of a magnitude. The smallest magnitude that is kept is found digit by digit, the highest first.
struct Digit {
  int shift, bits;
};
constexpr Digit kDigits[] = {{20, 11}, {10, 10}, {0, 10}};
constexpr int kMagnitudeBits = 31, kBins = 1 << 11;

/// The smallest magnitude that is kept, as far as it is known.
struct Threshold {
  uint32_t magnitude;  ///< zeros for the digits that are not known yet
  uint32_t wanted;     ///< so many of the elements with the known digits are kept
};

struct Encoded {
  const float* g = nullptr;
  uint8_t* codes = nullptr;
  int64_t numel = 0, kept = 0;
  uint32_t* bins = nullptr;  ///< 0 between launches
  Threshold* threshold = nullptr;
  uint64_t* counts = nullptr;  ///< of each block: its elements above the threshold · 2^32, and those equal to it

  __host__ __device__ int64_t blocks() const { return (numel + kPerBlock - 1) / kPerBlock; }
};
using EncodedTable = ItemTable<Encoded>;

/// Whether this block is the last of those of its tensor that come here.
__device__ bool is_last_of(const Encoded& of, const EncodedTable& table) {
  return is_last_block(static_cast<unsigned>(of.blocks()), static_cast<unsigned>(&of - table.entries));
}

/// Counts the values of the next digit among the elements with the known digits. The last block of a tensor finds the
/// digit.
__global__ void __launch_bounds__(kThreads) digit_kernel(Digit digit, const __grid_constant__ EncodedTable table) {
  __shared__ uint32_t held[kBins];
  const auto place = table.place();
  const Encoded& of = place.entry;
  const bool is_first = digit.shift + digit.bits == kMagnitudeBits;
  const Threshold known = is_first ? Threshold{0, static_cast<uint32_t>(of.kept)} : *of.threshold;
  for (int bin = static_cast<int>(threadIdx.x); bin < kBins; bin += kThreads) held[bin] = 0;
  __syncthreads();
  const int64_t first = place.block * kPerBlock + threadIdx.x;
#pragma unroll 4
  for (int k = 0; k < kPerThread; ++k) {
    const int64_t i = first + k * kThreads;
    const uint32_t magnitude = i < of.numel ? magnitude_bits(of.g[i]) : 0;
    if (i < of.numel && (magnitude ^ known.magnitude) >> digit.shift >> digit.bits == 0)
      atomicAdd(&held[magnitude >> digit.shift & ((1u << digit.bits) - 1)], 1u);
  }
  __syncthreads();
  for (int bin = static_cast<int>(threadIdx.x); bin < kBins; bin += kThreads)
    if (held[bin] != 0) atomicAdd(&of.bins[bin], held[bin]);
  if (!is_last_of(of, table)) return;
  constexpr int kOwn = kBins / kThreads;  // thread 0 has the highest bins
  const int highest = kBins - 1 - static_cast<int>(threadIdx.x) * kOwn;
  uint64_t own = 0;
  for (int k = 0; k < kOwn; ++k) own += of.bins[highest - k];
  uint64_t above = sum_before(own);
  const bool has_it = above < known.wanted && known.wanted <= above + own;
  for (int bin = highest; bin > highest - kOwn; --bin) {
    const uint32_t count = of.bins[bin];
    if (has_it && above < known.wanted && known.wanted <= above + count)
      *of.threshold = {known.magnitude | static_cast<uint32_t>(bin) << digit.shift,
                       known.wanted - static_cast<uint32_t>(above)};
    above += count;
    of.bins[bin] = 0;
  }
}

/// The last block of a tensor replaces the counts of each block by the sums of those before it.
__global__ void __launch_bounds__(kThreads) count_kernel(const __grid_constant__ EncodedTable table) {
  const auto place = table.place();
  const Encoded& of = place.entry;
  const uint32_t threshold = of.threshold->magnitude;
  const int64_t first = place.block * kPerBlock + threadIdx.x;
  uint64_t own = 0;
#pragma unroll 4
  for (int k = 0; k < kPerThread; ++k) {
    const int64_t i = first + k * kThreads;
    const uint32_t magnitude = i < of.numel ? magnitude_bits(of.g[i]) : 0;
    if (i < of.numel) own += magnitude > threshold ? uint64_t{1} << 32 : magnitude == threshold ? 1 : 0;
  }
  own = fold_group<kThreads>(own, Sum{});
  if (threadIdx.x == 0) of.counts[place.block] = own;
  if (is_last_of(of, table)) sum_counts_before(of.counts, of.blocks());
}

/// Each warp writes the kept ones of neighbouring elements.
__global__ void __launch_bounds__(kThreads) write_kernel(const __grid_constant__ EncodedTable table) {
  __shared__ uint64_t of_warp[kWarps];
  const auto place = table.place();
  const Encoded& of = place.entry;
  const Threshold threshold = *of.threshold;
  const int lane = lane_id(), warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t first = place.block * kPerBlock + warp * kWarp * kPerThread + lane;
  uint32_t above[kPerThread], equal[kPerThread];  // a bit for each lane
  uint64_t own = 0;
#pragma unroll
  for (int k = 0; k < kPerThread; ++k) {
    const int64_t i = first + k * kWarp;
    const uint32_t magnitude = i < of.numel ? magnitude_bits(of.g[i]) : 0;
    above[k] = __ballot_sync(~0u, i < of.numel && magnitude > threshold.magnitude);
    equal[k] = __ballot_sync(~0u, i < of.numel && magnitude == threshold.magnitude);
    own += uint64_t{static_cast<uint32_t>(__popc(above[k]))} << 32 | static_cast<uint32_t>(__popc(equal[k]));
  }
  if (lane == 0) of_warp[warp] = own;
  __syncthreads();
  uint64_t before = of.counts[place.block];
  for (int w = 0; w < warp; ++w) before += of_warp[w];
  auto equals = static_cast<uint32_t>(before);
  int64_t next = (before >> 32) + std::min(equals, threshold.wanted);
#pragma unroll
  for (int k = 0; k < kPerThread; ++k) {
    const uint32_t ties = static_cast<uint32_t>(votes_before(equal[k]));
    const bool is_tie = (equal[k] >> lane & 1u) != 0 && equals + ties < threshold.wanted;
    const bool is_kept = (above[k] >> lane & 1u) != 0 || is_tie;
    const uint32_t kept = __ballot_sync(~0u, is_kept);
    if (is_kept) {
      const int64_t i = first + k * kWarp, at = next + votes_before(kept);
      store_bytes(of.codes + 4 * at, 4, static_cast<uint32_t>(i));
      store_bytes(of.codes + 4 * (of.kept + at), 4, std::bit_cast<uint32_t>(of.g[i]));
    }
    next += __popc(kept);
    equals += static_cast<uint32_t>(__popc(equal[k]));
  }
}

void topk_encode(std::span<const TopKGradient> message) {
  check_topk_encode(message);
  constexpr int64_t kBinBytes = kBins * sizeof(uint32_t);
  std::vector<Encoded> entries;
  int64_t bytes = 0;
  for (const auto& [g, kept, codes] : message) {
    if (kept == 0) continue;
    entries.push_back({.g = g.data<float>(), .codes = codes.data<uint8_t>(), .numel = g.numel(), .kept = kept});
    bytes += kBinBytes + static_cast<int64_t>(sizeof(Threshold) + sizeof(uint64_t) * entries.back().blocks());
  }
  if (entries.empty()) return;
  const Device device = kernels::placement(message).device();
  const Tensor scratch = Tensor::zeros({bytes}, {.dtype = DType::u8, .device = device});
  auto* next = scratch.data<uint8_t>();
  const auto take = [&]<class T>(T*& part, int64_t count) {
    part = reinterpret_cast<T*>(next);
    next += count * static_cast<int64_t>(sizeof(T));
  };
  for (Encoded& of : entries) {
    take(of.bins, kBins);
    take(of.threshold, 1);
    take(of.counts, of.blocks());
  }
  for_each_table(
      std::span<const Encoded>(entries), [](const Encoded& of) { return of.blocks(); },
      [&](const EncodedTable& table) {
        for (const Digit& digit : kDigits) launch("topk_encode", device, table.grid(), digit_kernel, digit, table);
        launch("topk_encode", device, table.grid(), count_kernel, table);
        launch("topk_encode", device, table.grid(), write_kernel, table);
      });
}

struct Decoded {
  float* sum;
  const uint8_t* codes;  ///< of the first message
  int64_t numel, kept;
};

/// The elements of a sum that one block changes, so that the messages add to each element in their order.
constexpr int64_t kOwned = 1 << 14;
/// So many messages are searched at once.
constexpr int kSearched = kThreads / 2;

/// The number of a code's places below `place`.
__device__ int64_t places_below(const uint8_t* codes, int64_t kept, int64_t place) {
  int64_t low = 0, high = kept;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (load_bytes(codes + 4 * middle, 4) < place)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

__global__ void __launch_bounds__(kThreads)
    decode_kernel(int64_t messages, int64_t step, float factor, const __grid_constant__ ItemTable<Decoded> table) {
  __shared__ int64_t bounds[2 * kSearched];
  const auto place = table.place();
  const Decoded& of = place.entry;
  const int64_t begin = place.block * kOwned, end = std::min(begin + kOwned, of.numel);
  for (int64_t some = 0; some < messages; some += kSearched) {
    const uint8_t* codes = of.codes + some * step;
    const int count = static_cast<int>(std::min<int64_t>(kSearched, messages - some));
    __syncthreads();
    if (const auto own = static_cast<int>(threadIdx.x); own < 2 * count)
      bounds[own] = places_below(codes + own / 2 * step, of.kept, own % 2 == 0 ? begin : end);
    __syncthreads();
    for (int message = 0; message < count; ++message, codes += step) {
      for (int64_t i = bounds[2 * message] + threadIdx.x; i < bounds[2 * message + 1]; i += kThreads) {
        const int64_t at = load_bytes(codes + 4 * i, 4);
        if (at >= begin && at < end)  // not so only in a wrong message
          of.sum[at] += factor * std::bit_cast<float>(load_bytes(codes + 4 * (of.kept + i), 4));
      }
      __syncthreads();
    }
  }
}

void topk_decode_add(std::span<const TopKSum> message, const Tensor& messages, float factor) {
  check_topk_decode(message, messages);
  std::vector<Decoded> entries;
  for (const auto& [sum, kept, codes_at] : message)
    if (kept != 0) entries.push_back({sum.data<float>(), messages.data<uint8_t>() + codes_at, sum.numel(), kept});
  for_each_table(
      std::span<const Decoded>(entries), [](const Decoded& of) { return (of.numel + kOwned - 1) / kOwned; },
      [&](const auto& table) {
        launch("topk_decode_add", messages.device(), table.grid(), decode_kernel, messages.size(0), messages.size(1),
               factor, table);
      });
}

}  // namespace

void provide_topk() {
  kernels::topk_encode.provide(Target::cuda, topk_encode);
  kernels::topk_decode_add.provide(Target::cuda, topk_decode_add);
}

}  // namespace tern::cuda
