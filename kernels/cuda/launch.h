#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "tern/core/cuda/runtime.h"
#include "tern/core/error.h"
#include "tern/core/tensor.h"
#include "tern/core/visit.h"

namespace tern::cuda {

inline constexpr int kThreads = 256;

/// Blocks and threads of a launch.
struct Grid {
  dim3 blocks, threads = dim3(kThreads);
};

/// A grid with one thread for each of `count` elements, up to the number that keeps any device busy. Kernels loop over
/// the rest with a stride.
inline Grid grid_over(int64_t count) {
  constexpr int64_t kMostBlocks = 1 << 14;
  return {.blocks = dim3(static_cast<unsigned>(std::min((count + kThreads - 1) / kThreads, kMostBlocks)))};
}

/// Puts a kernel into the device's stream. Throws an error that names `operation`. Does nothing if the grid has no
/// blocks.
template <class... Parameters>
void launch(const char* operation, Device device, const Grid& grid, void (*kernel)(Parameters...),
            std::type_identity_t<Parameters>... arguments) {
  if (grid.blocks.x == 0 || grid.blocks.y == 0 || grid.blocks.z == 0) return;
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.stream = enter(device);
  check_cuda(cudaLaunchKernelEx(&config, kernel, arguments...), operation);
  if (waits_after_each()) check_cuda(cudaStreamSynchronize(config.stream), operation);
}

/// The number of this thread in a one-dimensional launch, and the number of threads.
__device__ inline int64_t global_thread() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline int64_t global_threads() { return int64_t{gridDim.x} * blockDim.x; }

/// The bytes that one instruction moves at most.
inline constexpr int kPackBytes = 16;

/// Neighbouring elements that one thread moves at once, in as few instructions as it takes.
template <class T, int Width>
struct alignas(std::min<size_t>(sizeof(T) * Width, kPackBytes)) Pack {
  T values[Width];
};

inline bool is_aligned(const void* memory, size_t bytes) { return reinterpret_cast<uintptr_t>(memory) % bytes == 0; }

/// Whether packs of `Width` elements can be loaded from `array` on.
template <int Width, class T>
bool takes_packs(const T* array) {
  return is_aligned(array, alignof(Pack<T, Width>));
}

template <class T, int Width>
__device__ Pack<T, Width> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, Width>*>(from);
}
template <class T, int Width>
__device__ void store_pack(T* to, const Pack<T, Width>& pack) {
  *reinterpret_cast<Pack<T, Width>*>(to) = pack;
}
/// Rounds the values to T and stores them.
template <class T, int Width>
__device__ void store_pack(T* to, const float (&values)[Width]) {
  Pack<T, Width> rounded;
  for (int k = 0; k < Width; ++k) rounded.values[k] = static_cast<T>(values[k]);
  store_pack(to, rounded);
}

/// As `visit_floating`, for f32 and bf16, the dtypes that the kernels compute in.
template <class Function>
decltype(auto) visit_fast(DType dtype, const char* operation, Function&& function) {
  check(dtype == DType::f32 || dtype == DType::bf16, operation, ": elements are ", dtype,
        ", on CUDA expected f32 or bf16");
  if (dtype == DType::bf16) return function(BFloat16{});
  return function(float{});
}

inline constexpr int kWarp = 32;

struct Sum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Maximum {
  __device__ float operator()(float a, float b) const { return a > b || a != a ? a : b; }  // NaN wins
};

/// Combines one value of each of `Group` neighbouring threads, a warp or the whole block, in a fixed tree. All threads
/// get the result. All threads of the block must call it together.
template <int Group, class T, class Fold>
__device__ T fold_group(T value, Fold fold) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) value = fold(value, __shfl_xor_sync(~0u, value, mask));
  if constexpr (Group > kWarp) {
    constexpr int kWarps = Group / kWarp;
    __shared__ T partial[kWarps];
    const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
    __syncthreads();
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    value = partial[lane % kWarps];
    for (int mask = kWarps / 2; mask > 0; mask /= 2) value = fold(value, __shfl_xor_sync(~0u, value, mask));
  }
  return value;
}

}  // namespace tern::cuda
