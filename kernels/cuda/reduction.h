#pragma once

#include <algorithm>

#include "tern/core/tensor.h"
#include "tern/kernels/cuda/indexing.h"
#include "tern/kernels/cuda/launch.h"

namespace tern::cuda {

/// The assignment of elements of x to sums. It splits the index space of x into the dimensions that y keeps and those
/// that are summed. Outputs are numbered in the storage order of x.
struct Summation {
  /// y has the rank of x, and extent 1 in the dimensions that are summed.
  Summation(const char* operation, const Tensor& x, const Tensor& y);
  /// One sum for each channel of x [N, C] or [N, C, H, W].
  static Summation per_channel(const char* operation, const Tensor& x);

  Walk<2> kept;    ///< offsets of an output's first element in x and of the output in y
  Walk<1> summed;  ///< offsets of an output's elements in x, relative to the first
  bool columns;    ///< x is [batch, rows, width], summed over rows, and y is dense [batch, width]
  int64_t batch, rows, width;
};

/// The number of parts of each sum, one block each. It depends only on the sizes, so the results also do.
struct Parts {
  int count;
  int64_t length;
};
/// `blocks` is the number of blocks beside each other that all sums need.
Parts cut(int64_t summed, int64_t per_pass, int64_t blocks);

inline constexpr int64_t kMostCounters = 1 << 12;

/// Whether this block is the last of `blocks` blocks that come here with `counter`, below kMostCounters. The last block
/// sees what all of them have written to memory. All threads of the block must call it together. The counters are 0
/// between launches, since the last block sets its own back. Launches share them: they run one after the other, in the
/// only stream that a device has for kernels.
__device__ inline bool is_last_block(unsigned blocks, unsigned counter) {
  static unsigned arrived[kMostCounters];
  __shared__ bool is_last;
  if (blocks == 1) {
    __syncthreads();
    return true;
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    is_last = atomicInc(&arrived[counter], blocks - 1) == blocks - 1;
    __threadfence();
  }
  __syncthreads();
  return is_last;
}

/// Adds the parts of the outputs from `first` to `last` - 1, at most `across` of them, a power of two up to kThreads.
/// Passes the totals to `finish(output, totals)`. The last block of these outputs calls it, with all of its threads.
template <int Sums, class Finish>
__device__ void finish_sums(Finish finish, const float* partials, int64_t outputs, int64_t first, int64_t last,
                            int across) {
  __shared__ double shared[Sums][kThreads];
  const int own = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const int64_t output = first + own % across;
  double totals[Sums] = {};
  if (output < last)
#pragma unroll 4
    for (unsigned part = own / across; part < gridDim.y; part += kThreads / across)
      for (int s = 0; s < Sums; ++s) totals[s] += partials[(int64_t{part} * Sums + s) * outputs + output];
  for (int s = 0; s < Sums; ++s) shared[s][own] = totals[s];
  for (int half = kThreads / 2; half >= across; half /= 2) {
    __syncthreads();
    if (own < half)
      for (int s = 0; s < Sums; ++s) shared[s][own] += shared[s][own + half];
  }
  if (own >= across || output >= last) return;
  for (int s = 0; s < Sums; ++s) totals[s] = shared[s][own];
  finish(output, totals);
}

/// Adds `each(at, output, sums)` over the elements of a column of x: `Sums` quantities at once, `Width` columns per
/// thread. partials: [part, quantity, output]; null if there is one part.
template <int Width, int Sums, class Each, class Finish>
__global__ void sum_columns(Each each, Finish finish, int64_t rows, int64_t width, int64_t part_length,
                            float* partials) {
  __shared__ float shared[Width * Sums][kThreads];  // neighbouring threads use neighbouring banks
  const int64_t column = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * Width;
  const int64_t first = int64_t{blockIdx.y} * part_length, last = std::min(first + part_length, rows);
  float sums[Width * Sums] = {};
  if (column < width) {
#pragma unroll 4
    for (int64_t row = first + threadIdx.y; row < last; row += blockDim.y)
      each.template add<Width>((blockIdx.z * rows + row) * width + column, column, sums);
  }
  const int own = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  for (int s = 0; s < Width * Sums; ++s) shared[s][own] = sums[s];
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half)
      for (int s = 0; s < Width * Sums; ++s) shared[s][own] += shared[s][own + half * blockDim.x];
  }
  const int across = static_cast<int>(blockDim.x) * Width;
  const int64_t begin = blockIdx.z * width + int64_t{blockIdx.x} * across,
                end = std::min(begin + across, (blockIdx.z + 1) * width);
  if (gridDim.y == 1) {  // the block has the whole sums
    __syncthreads();
    if (own >= across || begin + own >= end) return;
    double totals[Sums];
    for (int s = 0; s < Sums; ++s) totals[s] = shared[s * Width + own % Width][own / Width];
    finish(begin + own, totals);
    return;
  }
  const int64_t outputs = int64_t{gridDim.z} * width, output = blockIdx.z * width + column;
  if (threadIdx.y == 0 && column < width)
    for (int s = 0; s < Sums; ++s)
      for (int j = 0; j < Width; ++j)
        partials[(blockIdx.y * Sums + s) * outputs + output + j] = shared[s * Width + j][own];
  if (!is_last_block(gridDim.y, blockIdx.z * gridDim.x + blockIdx.x)) return;
  finish_sums<Sums>(finish, partials, outputs, begin, end, across);
}

/// As sum_columns, if the elements of one sum are neighbours or in any other order: `Group` threads for each output.
template <int Group, int Sums, class Each, class Finish>
__global__ void sum_runs(Each each, Finish finish, Walk<2> kept, Walk<1> summed, int64_t part_length, float* partials) {
  constexpr int kAcross = kThreads / Group;
  const int64_t begin = int64_t{blockIdx.x} * kAcross, output = begin + threadIdx.x / Group;
  const int64_t first = int64_t{blockIdx.y} * part_length, last = std::min(first + part_length, summed.count);
  float sums[Sums] = {};
  if (output < kept.count) {
    int64_t place[2] = {};
    kept.find(output, place);
#pragma unroll 4
    for (int64_t i = first + threadIdx.x % Group; i < last; i += Group) {
      int64_t at[1] = {place[0]};
      summed.find(i, at);
      each.template add<1>(at[0], output, sums);
    }
  }
  const bool leads = output < kept.count && threadIdx.x % Group == 0;
  double totals[Sums];
  for (int s = 0; s < Sums; ++s) {
    const float sum = fold_group<Group>(sums[s], Sum{});
    totals[s] = sum;
    if (leads && gridDim.y > 1) partials[(blockIdx.y * Sums + s) * kept.count + output] = sum;
  }
  if (gridDim.y == 1) {  // the threads have the whole sum
    if (leads) finish(output, totals);
    return;
  }
  if (is_last_block(gridDim.y, blockIdx.x))
    finish_sums<Sums>(finish, partials, kept.count, begin, std::min(begin + kAcross, kept.count), kAcross);
}

/// Runs a summation. `each.add<Width>(at, output, sums)` adds elements at to at + Width - 1 to sums[s·Width + j], for
/// the outputs from `output` on within the batch. `finish(output, totals)` receives double totals[Sums]. `packs`:
/// whether `each` can take `Width` neighbouring elements at once; otherwise it takes one.
template <int Sums, int Width, class Each, class Finish>
void sum(const char* operation, Device device, const Summation& summation, bool packs, Each each, Finish finish) {
  const int64_t outputs = summation.kept.count;
  if (outputs == 0) return;
  Tensor partials;
  const auto allocate = [&](const Parts& parts) -> float* {
    if (parts.count == 1) return nullptr;
    partials = Tensor::empty({parts.count * Sums * outputs}, {.device = device});
    return partials.data<float>();
  };
  const auto blocks = [](int64_t count, int64_t per_block) {
    return static_cast<unsigned>((count + per_block - 1) / per_block);
  };
  if (summation.columns) {
    const auto run = [&]<int W>(std::integral_constant<int, W>) {
      unsigned across = 1;  // threads side by side
      while (across < kWarp && across * W < summation.width) across *= 2;
      const unsigned down = kThreads / across;
      const dim3 beside(blocks(summation.width, across * W), 1, static_cast<unsigned>(summation.batch));
      const Parts parts = cut(summation.rows, down, int64_t{beside.x} * beside.z);
      launch(operation, device,
             {.blocks = dim3(beside.x, static_cast<unsigned>(parts.count), beside.z), .threads = dim3(across, down)},
             sum_columns<W, Sums, Each, Finish>, each, finish, summation.rows, summation.width, parts.length,
             allocate(parts));
    };
    if (packs && summation.width % Width == 0)
      run(std::integral_constant<int, Width>{});
    else
      run(std::integral_constant<int, 1>{});
  } else if (summation.summed.count <= 32 * kWarp) {
    const Parts parts{1, summation.summed.count};
    launch(operation, device, {.blocks = dim3(blocks(outputs, kThreads / kWarp))}, sum_runs<kWarp, Sums, Each, Finish>,
           each, finish, summation.kept, summation.summed, parts.length, allocate(parts));
  } else {
    const Parts parts = cut(summation.summed.count, kThreads, outputs);
    launch(operation, device, {.blocks = dim3(static_cast<unsigned>(outputs), static_cast<unsigned>(parts.count))},
           sum_runs<kThreads, Sums, Each, Finish>, each, finish, summation.kept, summation.summed, parts.length,
           allocate(parts));
  }
}

/// result = scale · Σ x[0], ..., x[count - 1], by all threads of one block.
template <class X, class Y>
__device__ void total(const X* x, int64_t count, double scale, Y* result) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) sum += x[i];
  sum = fold_group<kThreads>(sum, Sum{});
  if (threadIdx.x == 0) *result = static_cast<Y>(scale * sum);
}

}  // namespace tern::cuda
