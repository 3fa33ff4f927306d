#include "tern/kernels/cuda/codec.h"

#include "tern/kernels/codec_arithmetic.h"
#include "tern/kernels/cuda/launch.h"

namespace tern::cuda {
namespace {

using kernels::CodecSums;
using kernels::kStatisticsRun;
using kernels::UnitRule;

/// A run has one thread for each of its lanes. A block sums kRuns runs, which are a subtree of the tree of their
/// bucket.
constexpr int kLanes = kernels::kStatisticsLanes, kRuns = kThreads / kLanes, kWarps = kThreads / kWarp;
constexpr int64_t kBlockElements = kRuns * kStatisticsRun;
static_assert(kWarp == 2 * kLanes);

int64_t buckets_of(const BucketSums& sums) { return kernels::bucket_count(sums.numel, sums.width); }
constexpr bool is_one_run(const BucketSums& sums) { return sums.width <= kStatisticsRun; }
constexpr int64_t blocks_per_bucket(const BucketSums& sums) {
  return (sums.width + kBlockElements - 1) / kBlockElements;
}

/// Adds the sums of the thread whose number differs in one bit. All threads of the warp must call it together.
__device__ CodecSums with_neighbour(const CodecSums& sums, int bit) {
  return sums + CodecSums{__shfl_xor_sync(~0u, sums.largest, bit), __shfl_xor_sync(~0u, sums.sum, bit),
                          __shfl_xor_sync(~0u, sums.squares, bit)};
}

/// The last levels of the tree: adds one value of each warp of the block. All threads get the result. Missing values
/// count as zeros, which change no bit of the sums.
__device__ CodecSums fold_warps(CodecSums sums) {
  __shared__ double shared[3][kWarps];
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  if (lane == 0) {
    shared[0][warp] = sums.largest;
    shared[1][warp] = sums.sum;
    shared[2][warp] = sums.squares;
  }
  __syncthreads();
  sums = {shared[0][lane % kWarps], shared[1][lane % kWarps], shared[2][lane % kWarps]};
  for (int bit = 1; bit < kWarps; bit *= 2) sums = with_neighbour(sums, bit);
  return sums;
}

/// Stores a row of statistics or of partials.
__device__ void store(double* row, const CodecSums& sums) {
  row[0] = sums.largest;
  row[1] = sums.sum;
  row[2] = sums.squares;
}

__device__ void finish(const BucketSums& of, int64_t bucket, const CodecSums& sums, const UnitRule& rule) {
  if (of.statistics != nullptr)
    store(of.statistics + 3 * bucket, sums);
  else if (of.whole != nullptr)
    of.units[bucket] = kernels::codec_nearest(sums);
  else
    of.units[bucket] = kernels::codec_unit(rule, sums, std::min(of.width, of.numel - bucket * of.width));
}

/// Each block sums kRuns runs, of one bucket or of as many buckets.
template <bool kProducts>
__global__ void sum_runs(UnitRule rule, const __grid_constant__ ItemTable<BucketSums> table) {
  const auto place = table.place();
  const BucketSums& of = place.entry;
  const int64_t block = place.block;
  const int lane = static_cast<int>(threadIdx.x) % kLanes, run = static_cast<int>(threadIdx.x) / kLanes;
  const bool one_run = is_one_run(of);
  const int64_t per_bucket = blocks_per_bucket(of);
  const int64_t bucket = one_run ? block * kRuns + run : block / per_bucket;
  const int64_t first = bucket * of.width + (one_run ? 0 : block % per_bucket * kBlockElements + run * kStatisticsRun);
  const int64_t last = std::min(std::min(of.numel, (bucket + 1) * of.width), first + kStatisticsRun);
  float largest = 0;
  double sum = 0, squares = 0;
#pragma unroll 16
  for (int64_t i = first + lane; i < last; i += kLanes) {
    const float x = of.g[i];
    const double wide = x;
    largest = fmaxf(largest, fabsf(x));
    sum += kProducts ? wide * of.whole[i] : wide;  // the product of two floats is exact, too
    squares = fma(wide, wide, squares);            // the square of a float is exact
  }
  CodecSums sums = {largest, sum, squares};
  for (int bit = kLanes / 2; bit > 0; bit /= 2) sums = with_neighbour(sums, bit);
  if (one_run) {
    if (lane == 0 && first < of.numel) finish(of, bucket, sums, rule);
    return;
  }
  sums = fold_warps(with_neighbour(sums, kLanes));
  if (threadIdx.x != 0) return;
  if (per_bucket == 1) return finish(of, bucket, sums, rule);
  store(of.partials + 3 * block, sums);
}

/// One block for each bucket that takes several blocks. Each thread adds up a subtree, then all threads add up theirs.
__global__ void sum_partials(UnitRule rule, const __grid_constant__ ItemTable<BucketSums> table) {
  const auto place = table.place();
  const BucketSums& of = place.entry;
  const int64_t bucket = place.block, count = blocks_per_bucket(of);
  int64_t stretch = 1;
  while (stretch * kThreads < count) stretch *= 2;
  const int64_t first = threadIdx.x * stretch, left = count - first;
  auto* partials = reinterpret_cast<CodecSums*>(of.partials) + bucket * count;
  CodecSums sums = left <= 0 ? CodecSums{} : kernels::codec_tree(partials + first, std::min(stretch, left));
  for (int bit = 1; bit < kWarp; bit *= 2) sums = with_neighbour(sums, bit);
  sums = fold_warps(sums);
  if (threadIdx.x == 0) finish(of, bucket, sums, rule);
}

template <bool kProducts>
void sum_all(const char* operation, Device device, std::span<BucketSums> gradients, const UnitRule& rule) {
  const auto partials_of = [](const BucketSums& of) {
    return blocks_per_bucket(of) > 1 ? buckets_of(of) * blocks_per_bucket(of) : 0;
  };
  int64_t count = 0;
  for (const BucketSums& of : gradients) count += partials_of(of);
  const Tensor partials = Tensor::empty({count, 3}, {.dtype = DType::f64, .device = device});
  double* next = partials.data<double>();
  for (BucketSums& of : gradients) {
    of.partials = next;
    next += 3 * partials_of(of);
  }
  const std::span<const BucketSums> all = gradients;
  for_each_table(
      all,
      [](const BucketSums& of) {
        return is_one_run(of) ? (buckets_of(of) + kRuns - 1) / kRuns : buckets_of(of) * blocks_per_bucket(of);
      },
      [&](const auto& table) { launch(operation, device, table.grid(), sum_runs<kProducts>, rule, table); });
  if (count == 0) return;
  for_each_table(
      all, [](const BucketSums& of) { return blocks_per_bucket(of) > 1 ? buckets_of(of) : 0; },
      [&](const auto& table) { launch(operation, device, table.grid(), sum_partials, rule, table); });
}

}  // namespace

void sum_buckets(const char* operation, Device device, std::span<BucketSums> gradients, const UnitRule& rule) {
  sum_all<false>(operation, device, gradients, rule);
}
void sum_products(const char* operation, Device device, std::span<BucketSums> gradients) {
  sum_all<true>(operation, device, gradients, {});
}

}  // namespace tern::cuda
