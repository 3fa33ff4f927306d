#pragma once

#include "tern/kernels/cuda/launch.h"

// Kernels over the rows of a matrix.

namespace tern::cuda {

/// One row of a matrix, for its group of threads.
template <int Group>
struct Row {
  int64_t number, columns;
  bool exists;  ///< groups beyond the last row take part in the barriers only
  __device__ int64_t begin() const { return number * columns; }

  /// Combines value(column) over the row. All threads of the group get the result.
  template <class Fold, class Value>
  __device__ float fold(float first, Fold fold, Value value) const {
    float result = first;
    if (exists)
      for (int64_t column = threadIdx.x % Group; column < columns; column += Group)
        result = fold(result, value(column));
    return fold_group<Group>(result, fold);
  }
  template <class Visit>
  __device__ void for_each(Visit visit) const {
    if (!exists) return;
    for (int64_t column = threadIdx.x % Group; column < columns; column += Group) visit(column);
  }
};

template <int Group, class Body>
__global__ void row_kernel(Body body, int64_t rows, int64_t columns) {
  const int64_t number = int64_t{blockIdx.x} * (kThreads / Group) + threadIdx.x / Group;
  body(Row<Group>{number, columns, number < rows});
}

/// Calls body(row) for every row. If rows are short, each has a warp; otherwise each has a block.
template <class Body>
void for_each_row(const char* operation, Device device, int64_t rows, int64_t columns, Body body) {
  constexpr int64_t kShort = 1024;
  const auto blocks = [rows](int group) {
    const int64_t per_block = kThreads / group;
    return Grid{.blocks = dim3(static_cast<unsigned>((rows + per_block - 1) / per_block))};
  };
  if (columns <= kShort)
    launch(operation, device, blocks(kWarp), row_kernel<kWarp, Body>, body, rows, columns);
  else
    launch(operation, device, blocks(kThreads), row_kernel<kThreads, Body>, body, rows, columns);
}

}  // namespace tern::cuda
