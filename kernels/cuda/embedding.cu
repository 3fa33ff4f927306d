#include "tern/kernels/embedding.h"

#include <algorithm>

#include "tern/kernels/cuda/launch.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

/// A sparse matrix in compressed sparse rows.
struct SparseArrays {
  const int64_t *index, *first;
  const float* value;  ///< null if all are 1
  int64_t rows, columns, elements;

  __device__ float at(int64_t element) const { return value ? value[element] : 1.0f; }
  __device__ bool has(int64_t column) const { return 0 <= column && column < columns; }
  /// The row of an element.
  __device__ int64_t row_of(int64_t element) const {
    int64_t low = 0, high = rows;
    while (low + 1 < high) {
      const int64_t middle = (low + high) / 2;
      (first[middle] <= element ? low : high) = middle;
    }
    return low;
  }
};

SparseArrays sparse_arrays(const Tensor& indices, const Tensor& offsets, const Tensor& values, int64_t columns) {
  return {.index = indices.data<int64_t>(),
          .first = offsets.data<int64_t>(),
          .value = values.defined() ? values.data<float>() : nullptr,
          .rows = offsets.numel() - 1,
          .columns = columns,
          .elements = indices.numel()};
}

/// One thread for each element of y. Neighbours read neighbours of weight.
__global__ void embedding_bag_kernel(SparseArrays sparse, const float* weight, int64_t features, float* y) {
  for (int64_t i = global_thread(); i < sparse.rows * features; i += global_threads()) {
    const int64_t row = i / features, feature = i - row * features;
    const int64_t begin = sparse.first[row], end = sparse.first[row + 1];
    bool fits = 0 <= begin && begin <= end && end <= sparse.elements;
    float sum = 0;
    for (int64_t e = begin; fits && e < end; ++e) {
      fits = sparse.has(sparse.index[e]);
      if (fits) sum += sparse.at(e) * weight[sparse.index[e] * features + feature];
    }
    y[i] = fits ? sum : nanf("");
  }
}

void embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, const Tensor& values,
                   Tensor& y) {
  kernels::check_sparse_rows("embedding_bag", indices, offsets, values, weight.shape(), weight.size(0));
  check(weight.dtype() == DType::f32, "embedding_bag: weight is ", weight.dtype(), ", on CUDA expected f32");
  launch("embedding_bag", weight.device(), grid_over(y.numel()), embedding_bag_kernel,
         sparse_arrays(indices, offsets, values, weight.size(0)), weight.data<float>(), weight.size(1),
         y.data<float>());
}

/// Block b has the rows b, b + blocks, ... of dweight. It reads all elements in order and adds those of its rows. A
/// thread has every blockDim-th feature, so that no two threads add to one sum.
__global__ void embedding_bag_gradient(SparseArrays sparse, const float* dy, int64_t features, float* dweight) {
  __shared__ int64_t columns[kThreads], rows[kThreads];
  __shared__ float values[kThreads];
  for (int64_t column = blockIdx.x; column < sparse.columns; column += gridDim.x)
    for (int64_t j = threadIdx.x; j < features; j += blockDim.x) dweight[column * features + j] = 0;
  for (int64_t tile = 0; tile < sparse.elements; tile += kThreads) {
    const int64_t own = tile + threadIdx.x;
    __syncthreads();
    if (own < sparse.elements) {
      columns[threadIdx.x] = sparse.index[own];
      rows[threadIdx.x] = sparse.row_of(own);
      values[threadIdx.x] = sparse.at(own);
    }
    __syncthreads();
    for (int64_t k = 0; k < min(int64_t{kThreads}, sparse.elements - tile); ++k) {
      if (!sparse.has(columns[k]) || columns[k] % gridDim.x != blockIdx.x) continue;
      for (int64_t j = threadIdx.x; j < features; j += blockDim.x)
        dweight[columns[k] * features + j] += values[k] * dy[rows[k] * features + j];
    }
  }
}

void embedding_bag_backward(const Tensor& dy, const Tensor& indices, const Tensor& offsets, const Tensor& values,
                            Tensor& dweight) {
  kernels::check_sparse_rows("embedding_bag_backward", indices, offsets, values, dy.shape(), dweight.size(0));
  check(dy.dtype() == DType::f32, "embedding_bag_backward: dy is ", dy.dtype(), ", on CUDA expected f32");
  constexpr int64_t kMostBlocks = 512;
  const Grid grid{.blocks = dim3(static_cast<unsigned>(std::min(dweight.size(0), kMostBlocks)))};
  launch("embedding_bag_backward", dy.device(), grid, embedding_bag_gradient,
         sparse_arrays(indices, offsets, values, dweight.size(0)), dy.data<float>(), dweight.size(1),
         dweight.data<float>());
}

}  // namespace

void provide_embedding() {
  kernels::embedding_bag.provide(Target::cuda, embedding_bag);
  kernels::embedding_bag_backward.provide(Target::cuda, embedding_bag_backward);
}

}  // namespace tern::cuda
