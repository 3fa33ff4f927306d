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
Parts cut(int64_t summed, int64_t per_pass);

/// Adds `each(at, output, sums)` over the elements of a column of x: `Sums` quantities at once, `Width` columns per
/// thread. partials: [part, quantity, output].
template <int Width, int Sums, class Each>
__global__ void sum_columns(Each each, int64_t rows, int64_t width, int64_t part_length, float* partials) {
  __shared__ float shared[Width * Sums][kThreads];  // neighbouring threads use neighbouring banks
  const int64_t column = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * Width;
  const int64_t first = int64_t{blockIdx.y} * part_length, last = std::min(first + part_length, rows);
  float sums[Width * Sums] = {};
  if (column < width) {
#pragma unroll 4
    for (int64_t row = first + threadIdx.y; row < last; row += blockDim.y)
      each.template add<Width>((blockIdx.z * rows + row) * width + column, column, sums);
  }
  const unsigned own = threadIdx.y * blockDim.x + threadIdx.x;
  for (int s = 0; s < Width * Sums; ++s) shared[s][own] = sums[s];
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half)
      for (int s = 0; s < Width * Sums; ++s) shared[s][own] += shared[s][own + half * blockDim.x];
  }
  if (threadIdx.y != 0 || column >= width) return;
  const int64_t outputs = int64_t{gridDim.z} * width, output = blockIdx.z * width + column;
  for (int s = 0; s < Sums; ++s)
    for (int j = 0; j < Width; ++j)
      partials[(blockIdx.y * Sums + s) * outputs + output + j] = shared[s * Width + j][own];
}

/// As sum_columns, if the elements of one sum are neighbours or in any other order: `Group` threads for each output.
template <int Group, int Sums, class Each>
__global__ void sum_runs(Each each, Walk<2> kept, Walk<1> summed, int64_t part_length, float* partials) {
  const int64_t output = int64_t{blockIdx.x} * (kThreads / Group) + threadIdx.x / Group;
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
  for (int s = 0; s < Sums; ++s) {
    const float sum = fold_group<Group>(sums[s], Sum{});
    if (output < kept.count && threadIdx.x % Group == 0) partials[(blockIdx.y * Sums + s) * kept.count + output] = sum;
  }
}

/// Adds the parts, with one warp for each output, and passes the totals to `finish(output, totals)`.
template <int Sums, class Finish>
__global__ void finish_sums(Finish finish, const float* partials, int parts, int64_t outputs) {
  const int64_t output = int64_t{blockIdx.x} * (kThreads / kWarp) + threadIdx.x / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  double totals[Sums] = {};
  if (output < outputs)
    for (int part = lane; part < parts; part += kWarp)
      for (int s = 0; s < Sums; ++s) totals[s] += partials[(int64_t{part} * Sums + s) * outputs + output];
  for (double& total : totals) total = fold_group<kWarp>(total, Sum{});
  if (output < outputs && lane == 0) finish(output, totals);
}

/// Runs a summation. `each.add<Width>(at, output, sums)` adds elements at to at + Width - 1 to sums[s·Width + j], for
/// the outputs from `output` on within the batch. `finish(output, totals)` receives double totals[Sums]. `packs`:
/// whether `each` can take `Width` neighbouring elements at once; otherwise it takes one.
template <int Sums, int Width, class Each, class Finish>
void sum(const char* operation, Device device, const Summation& summation, bool packs, Each each, Finish finish) {
  const int64_t outputs = summation.kept.count;
  if (outputs == 0) return;
  Parts parts{};
  Tensor partials;
  const auto allocate = [&] {
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
      parts = cut(summation.rows, down);
      launch(operation, device,
             {.blocks = dim3(blocks(summation.width, across * W), static_cast<unsigned>(parts.count),
                             static_cast<unsigned>(summation.batch)),
              .threads = dim3(across, down)},
             sum_columns<W, Sums, Each>, each, summation.rows, summation.width, parts.length, allocate());
    };
    if (packs && summation.width % Width == 0)
      run(std::integral_constant<int, Width>{});
    else
      run(std::integral_constant<int, 1>{});
  } else if (summation.summed.count <= 32 * kWarp) {
    parts = {1, summation.summed.count};
    launch(operation, device, {.blocks = dim3(blocks(outputs, kThreads / kWarp))}, sum_runs<kWarp, Sums, Each>, each,
           summation.kept, summation.summed, parts.length, allocate());
  } else {
    parts = cut(summation.summed.count, kThreads);
    launch(operation, device, {.blocks = dim3(static_cast<unsigned>(outputs), static_cast<unsigned>(parts.count))},
           sum_runs<kThreads, Sums, Each>, each, summation.kept, summation.summed, parts.length, allocate());
  }
  launch(operation, device, {.blocks = dim3(blocks(outputs, kThreads / kWarp))}, finish_sums<Sums, Finish>, finish,
         static_cast<const float*>(partials.data<float>()), parts.count, outputs);
}

/// result [one element, f32 or f64] = scale · Σ x, in one launch of one block. For partial results, f32 or f64.
void total(const char* operation, const Tensor& x, double scale, const Tensor& result);

}  // namespace tern::cuda
