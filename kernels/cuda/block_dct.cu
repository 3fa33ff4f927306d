#include "tern/kernels/block_dct.h"
#include "tern/kernels/cuda/launch.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

using namespace tern::kernels;

/// The matrices in device memory.
struct Matrices {
  const float *of_columns, *of_rows, *of_rest;
};

/// Element (k, j) of the matrix [n, n], or of its transpose.
__device__ float element(const float* matrix, int64_t n, int64_t k, int64_t j, bool transposed) {
  return matrix[transposed ? j * n + k : k * n + j];
}

/// Each CUDA block transforms one block of the grid. y may be x.
__global__ void dct_kernel(const float* x, const __grid_constant__ BlockGrid grid, const __grid_constant__ Matrices of,
                           bool inverse, float scale, bool sign, float* y) {
  __shared__ float own[kMostDctSide * kMostDctSide], half[kMostDctSide * kMostDctSide];
  const int64_t block = blockIdx.x, rows = grid.tile_rows, width = grid.width(block), count = rows * width;
  const float* const of_rows = width == grid.tile_columns ? of.of_rows : of.of_rest;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) own[i] = x[grid.at(block, i)];
  __syncthreads();
  for (int64_t i = threadIdx.x; i < count; i += kThreads) {
    const int64_t row = i / width, l = i % width;
    float sum = 0;
    for (int64_t j = 0; j < width; ++j) sum += element(of_rows, width, l, j, inverse) * own[row * width + j];
    half[i] = sum;
  }
  __syncthreads();
  for (int64_t i = threadIdx.x; i < count; i += kThreads) {
    const int64_t k = i / width, l = i % width;
    float sum = 0;
    for (int64_t j = 0; j < rows; ++j) sum += element(of.of_columns, rows, k, j, inverse) * half[j * width + l];
    y[grid.at(block, i)] = sign ? (sum > 0 ? 1.0f : 0.0f) - (sum < 0 ? 1.0f : 0.0f) : scale * sum;
  }
}

void block_dct(const Tensor& x, const BlockCosines& cosines, const BlockDctOptions& options, Tensor& y) {
  check_block_dct(x, cosines, options, y);
  check(x.dtype() == DType::f32, "block_dct: elements are ", x.dtype(), ", on CUDA expected f32");
  if (x.numel() == 0) return;
  const BlockGrid grid(x.shape(), options.side, options.run);
  const auto elements = [](const Tensor& matrix) { return matrix.defined() ? matrix.data<float>() : nullptr; };
  launch("block_dct", x.device(), {.blocks = dim3(static_cast<unsigned>(grid.count()))}, dct_kernel,
         static_cast<const float*>(x.data<float>()), grid,
         Matrices{elements(cosines.of_columns), elements(cosines.of_rows), elements(cosines.of_rest)}, options.inverse,
         static_cast<float>(options.scale), options.sign, y.data<float>());
}

}  // namespace

void provide_block_dct() { kernels::block_dct.provide(Target::cuda, block_dct); }

}  // namespace tern::cuda
