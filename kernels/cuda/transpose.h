#pragma once

#include "tern/kernels/cuda/launch.h"
#include "tern/kernels/cuda/vector.h"

namespace tern::cuda {

/// Matrices one after the other, each `rows` × `columns`.
struct Matrices {
  int64_t count, rows, columns;
};

/// What a block transposes at once, and the rows that it moves at once.
inline constexpr int kTransposeTile = 32, kTransposeRows = 8;

/// Tile by tile through shared memory, so that both sides move whole lines.
template <class From, class To>
__global__ void transpose_kernel(const From* x, Matrices shape, int64_t tiles_across, int64_t tiles, To* y) {
  alignas(From) __shared__ unsigned char
      bytes[kTransposeTile * (kTransposeTile + 1) * sizeof(From)];  // shared memory has no constructors
  auto* tile = reinterpret_cast<From(*)[kTransposeTile + 1]>(bytes);
  for (int64_t t = blockIdx.x; t < shape.count * tiles; t += gridDim.x) {
    const int64_t matrix = t / tiles, within = t % tiles;
    const int64_t row = within / tiles_across * kTransposeTile, column = within % tiles_across * kTransposeTile;
    const int64_t origin = matrix * shape.rows * shape.columns;
    __syncthreads();
    for (int r = static_cast<int>(threadIdx.y); r < kTransposeTile; r += kTransposeRows)
      if (row + r < shape.rows && column + threadIdx.x < shape.columns)
        tile[r][threadIdx.x] = x[origin + (row + r) * shape.columns + column + threadIdx.x];
    __syncthreads();
    for (int r = static_cast<int>(threadIdx.y); r < kTransposeTile; r += kTransposeRows)
      if (column + r < shape.columns && row + threadIdx.x < shape.rows)
        y[origin + (column + r) * shape.rows + row + threadIdx.x] =
            static_cast<To>(wider_t<From>(tile[threadIdx.x][r]));
  }
}

/// y [count, columns, rows] = x [count, rows, columns], each matrix transposed.
template <class From, class To>
void transpose_matrices(const char* operation, Device device, const From* x, const Matrices& shape, To* y) {
  const int64_t across = (shape.columns + kTransposeTile - 1) / kTransposeTile,
                tiles = across * ((shape.rows + kTransposeTile - 1) / kTransposeTile);
  const int64_t blocks = std::min<int64_t>(shape.count * tiles, 1 << 16);
  launch(operation, device,
         {.blocks = dim3(static_cast<unsigned>(blocks)), .threads = dim3(kTransposeTile, kTransposeRows)},
         transpose_kernel<From, To>, x, shape, across, tiles, y);
}

}  // namespace tern::cuda
