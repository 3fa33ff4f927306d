#include "tern/kernels/cuda/codec.h"

#include "tern/kernels/codec_arithmetic.h"
#include "tern/kernels/cuda/launch.h"
#include "tern/kernels/cuda/reduction.h"

namespace tern::cuda {
namespace {

using kernels::CodecSums;
using kernels::kStatisticsRun;
using kernels::UnitRule;

/// A run has one thread for each of its lanes. A block sums a piece of kRuns runs at a time, which are a subtree of the
/// tree of their bucket.
constexpr int kLanes = kernels::kStatisticsLanes, kRuns = kThreads / kLanes, kWarps = kThreads / kWarp;
constexpr int64_t kPiece = kRuns * kStatisticsRun;
static_assert(kWarp == 2 * kLanes && kMostSharedBuckets <= kMostCounters);

int64_t buckets_of(const BucketSums& sums) { return kernels::bucket_count(sums.numel, sums.width); }
constexpr bool is_one_run(const BucketSums& sums) { return sums.width <= kStatisticsRun; }
constexpr int64_t pieces_of_bucket(const BucketSums& sums) { return (sums.width + kPiece - 1) / kPiece; }

/// Adds the sums of the thread whose number differs in one bit. All threads of the warp must call it together.
__device__ CodecSums with_neighbour(const CodecSums& sums, int bit) {
  return sums + CodecSums{__shfl_xor_sync(~0u, sums.largest, bit), __shfl_xor_sync(~0u, sums.sum, bit),
                          __shfl_xor_sync(~0u, sums.squares, bit)};
}

/// The last levels of the tree: adds one value of each warp of the block. All threads get the result. Missing values
/// count as zeros, which change no bit of the sums.
__device__ CodecSums fold_warps(CodecSums sums) {
  __shared__ double shared[3][kWarps];
  __syncthreads();  // all have read what the last call stored
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

/// The sums of the elements from `first` to `last` - 1 of a run. Each of its lanes gets them.
template <bool kProducts>
__device__ CodecSums sum_run(const BucketSums& of, int64_t first, int64_t last) {
  float largest = 0;
  double sum = 0, squares = 0;
#pragma unroll 16
  for (int64_t i = first + threadIdx.x % kLanes; i < last; i += kLanes) {
    const float x = of.g[i];
    const double wide = x;
    largest = fmaxf(largest, fabsf(x));
    sum += kProducts ? wide * of.whole[i] : wide;  // the product of two floats is exact, too
    squares = fma(wide, wide, squares);            // the square of a float is exact
  }
  CodecSums sums = {largest, sum, squares};
  for (int bit = kLanes / 2; bit > 0; bit /= 2) sums = with_neighbour(sums, bit);
  return sums;
}

/// The tree of all pieces of a bucket. Each thread adds up a subtree, then all threads add up theirs.
__device__ CodecSums add_pieces(CodecSums* pieces, int64_t count) {
  int64_t stretch = 1;
  while (stretch * kThreads < count) stretch *= 2;
  const int64_t first = threadIdx.x * stretch, left = count - first;
  CodecSums sums = left <= 0 ? CodecSums{} : kernels::codec_tree(pieces + first, std::min(stretch, left));
  for (int bit = 1; bit < kWarp; bit *= 2) sums = with_neighbour(sums, bit);
  return fold_warps(sums);
}

/// Each block sums kRuns buckets of one run, or pieces of one bucket. The last block of a bucket adds up its pieces.
template <bool kProducts>
__global__ void sum_buckets_kernel(UnitRule rule, const __grid_constant__ ItemTable<BucketSums> table) {
  const auto place = table.place();
  const BucketSums& of = place.entry;
  const int run = static_cast<int>(threadIdx.x) / kLanes;
  if (is_one_run(of)) {
    const int64_t bucket = place.block * kRuns + run, first = bucket * of.width;
    const CodecSums sums = sum_run<kProducts>(of, first, std::min(of.numel, first + of.width));
    if (threadIdx.x % kLanes == 0 && first < of.numel) finish(of, bucket, sums, rule);
    return;
  }
  const int64_t bucket = place.block / of.blocks, pieces = pieces_of_bucket(of);
  const int64_t end = std::min(of.numel, (bucket + 1) * of.width);
  double* partials = of.partials + 3 * bucket * pieces;
  for (int64_t piece = place.block % of.blocks; piece < pieces; piece += of.blocks) {
    const int64_t first = bucket * of.width + piece * kPiece + run * kStatisticsRun;
    CodecSums sums = sum_run<kProducts>(of, first, std::min(end, first + kStatisticsRun));
    sums = fold_warps(with_neighbour(sums, kLanes));
    if (threadIdx.x != 0) continue;
    if (pieces == 1)
      finish(of, bucket, sums, rule);
    else
      store(partials + 3 * piece, sums);
  }
  if (pieces == 1 || !is_last_block(static_cast<unsigned>(of.blocks), static_cast<unsigned>(of.first_counter + bucket)))
    return;
  const CodecSums sums = add_pieces(reinterpret_cast<CodecSums*>(partials), pieces);
  if (threadIdx.x == 0) finish(of, bucket, sums, rule);
}

/// Gives the buckets of several pieces their scratch and their blocks.
Tensor share_out(std::span<BucketSums> gradients, Device device, int64_t most_shared) {
  const auto partials_of = [](const BucketSums& of) {
    return pieces_of_bucket(of) > 1 ? 3 * buckets_of(of) * pieces_of_bucket(of) : 0;
  };
  int64_t count = 0;
  for (const BucketSums& of : gradients) count += partials_of(of);
  Tensor partials = Tensor::empty({count}, {.dtype = DType::f64, .device = device});
  double* next = partials.data<double>();
  int64_t shared = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    BucketSums& of = gradients[i];
    of.partials = next;
    next += partials_of(of);
    if (i % ItemTable<BucketSums>::kMost == 0) shared = 0;  // the next launch can use the same counters
    if (pieces_of_bucket(of) == 1 || shared + buckets_of(of) > most_shared) continue;
    of.blocks = pieces_of_bucket(of);
    of.first_counter = shared;
    shared += buckets_of(of);
  }
  return partials;
}

template <bool kProducts>
void sum_all(const char* operation, Device device, std::span<BucketSums> gradients, const UnitRule& rule,
             int64_t most_shared) {
  const Tensor partials = share_out(gradients, device, most_shared);
  for_each_table(
      std::span<const BucketSums>(gradients),
      [](const BucketSums& of) {
        return is_one_run(of) ? (buckets_of(of) + kRuns - 1) / kRuns : buckets_of(of) * of.blocks;
      },
      [&](const auto& table) { launch(operation, device, table.grid(), sum_buckets_kernel<kProducts>, rule, table); });
}

}  // namespace

void sum_buckets(const char* operation, Device device, std::span<BucketSums> gradients, const UnitRule& rule,
                 int64_t most_shared) {
  sum_all<false>(operation, device, gradients, rule, most_shared);
}
void sum_products(const char* operation, Device device, std::span<BucketSums> gradients) {
  sum_all<true>(operation, device, gradients, {}, kMostSharedBuckets);
}

}  // namespace tern::cuda
