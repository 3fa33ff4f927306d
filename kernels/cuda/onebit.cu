#include "tern/kernels/onebit.h"

#include <bit>
#include <vector>

#include "tern/kernels/cuda/codec.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

using namespace tern::kernels;
static_assert(kOneBitLanes == kWarp);

constexpr int kWarps = kThreads / kWarp, kPerThread = 8;
constexpr int64_t kPerBlock = int64_t{kThreads} * kPerThread;
constexpr int64_t element_blocks(int64_t numel) { return (numel + kPerBlock - 1) / kPerBlock; }

struct Encoded {
  const float* g;
  uint8_t* codes;
  int64_t numel, width;

  __host__ __device__ int64_t rows() const { return numel / width; }
  __host__ __device__ int64_t row_blocks() const { return (rows() + kWarps - 1) / kWarps; }
};

/// A warp for a row.
__device__ void store_means(const Encoded& of, int64_t row) {
  if (row >= of.rows()) return;
  OneBitSums sums;
  const float* const x = of.g + row * of.width;
#pragma unroll 4
  for (int64_t i = lane_id(); i < of.width; i += kWarp) sums.add(x[i]);
  for (int bit = kWarp / 2; bit > 0; bit /= 2)
    sums = sums + OneBitSums{__shfl_xor_sync(~0u, sums.sum, bit), __shfl_xor_sync(~0u, sums.magnitudes, bit),
                             __shfl_xor_sync(~0u, sums.negatives, bit)};
  if (lane_id() < 2)
    store_bytes(of.codes + 8 * row + 4 * lane_id(), 4, std::bit_cast<uint32_t>(sums.mean(lane_id() == 0, of.width)));
}

/// The first blocks of a tensor make its means, the others its signs.
__global__ void __launch_bounds__(kThreads) encode_kernel(const __grid_constant__ ItemTable<Encoded> table) {
  const auto place = table.place();
  const Encoded& of = place.entry;
  if (place.block < of.row_blocks()) return store_means(of, place.block * kWarps + threadIdx.x / kWarp);
  const int64_t first = (place.block - of.row_blocks()) * kPerBlock + threadIdx.x;
  uint8_t* const signs = of.codes + 8 * of.rows();
#pragma unroll
  for (int k = 0; k < kPerThread; ++k) {
    const int64_t e = first + k * kThreads, group = e - lane_id();
    const uint32_t word = __ballot_sync(~0u, e < of.numel && of.g[e] < 0);
    if (lane_id() == 0 && group < of.numel)
      store_bytes(signs + group / 8, static_cast<int>(std::min<int64_t>(4, (of.numel - group + 7) / 8)), word);
  }
}

void onebit_encode(std::span<const OneBitGradient> message) {
  check_onebit_encode(message);
  std::vector<Encoded> entries;
  for (const auto& [g, width, codes] : message)
    entries.push_back({g.data<float>(), codes.data<uint8_t>(), g.numel(), width});
  for_each_table(
      std::span<const Encoded>(entries), [](const Encoded& of) { return of.row_blocks() + element_blocks(of.numel); },
      [&](const auto& table) {
        launch("onebit_encode", kernels::placement(message).device(), table.grid(), encode_kernel, table);
      });
}

struct Decoded {
  float* sum;
  const uint8_t* codes;  ///< of the first message
  int64_t numel, width;
};

__global__ void __launch_bounds__(kThreads)
    decode_kernel(int64_t messages, int64_t step, const __grid_constant__ ItemTable<Decoded> table) {
  const auto place = table.place();
  const Decoded& of = place.entry;
  const int64_t first = place.block * kPerBlock + threadIdx.x, signs_at = 8 * (of.numel / of.width);
#pragma unroll 2
  for (int k = 0; k < kPerThread; ++k) {
    const int64_t e = first + k * kThreads;
    if (e >= of.numel) return;
    const int64_t mean_at = 8 * (e / of.width);
    float sum = of.sum[e];
    for (int64_t i = 0; i < messages; ++i) {
      const uint8_t* const codes = of.codes + i * step;
      const bool is_negative = (codes[signs_at + e / 8] >> (e % 8) & 1u) != 0;
      sum += std::bit_cast<float>(load_bytes(codes + mean_at + (is_negative ? 0 : 4), 4));
    }
    of.sum[e] = sum;
  }
}

void onebit_decode_add(std::span<const OneBitSum> message, const Tensor& messages) {
  check_onebit_decode(message, messages);
  std::vector<Decoded> entries;
  for (const auto& [sum, width, codes_at] : message)
    entries.push_back({sum.data<float>(), messages.data<uint8_t>() + codes_at, sum.numel(), width});
  for_each_table(
      std::span<const Decoded>(entries), [](const Decoded& of) { return element_blocks(of.numel); },
      [&](const auto& table) {
        launch("onebit_decode_add", messages.device(), table.grid(), decode_kernel, messages.size(0), messages.size(1),
               table);
      });
}

}  // namespace

void provide_onebit() {
  kernels::onebit_encode.provide(Target::cuda, onebit_encode);
  kernels::onebit_decode_add.provide(Target::cuda, onebit_decode_add);
}

}  // namespace tern::cuda
