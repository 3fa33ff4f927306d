#pragma once

#include <algorithm>
#include <cstdint>

#include "tern/core/cuda/runtime.h"

namespace tern::cuda {

inline constexpr int kThreads = 256;

/// Blocks and threads of a launch.
struct Grid {
  dim3 blocks, threads = dim3(kThreads);
};

/// At least one thread for each of `count`, or as many as keep any device busy: kernels stride over the rest.
inline Grid grid_over(int64_t count) {
  constexpr int64_t kMostBlocks = 1 << 14;
  return {.blocks = dim3(static_cast<unsigned>(std::min((count + kThreads - 1) / kThreads, kMostBlocks)))};
}

/// Puts a kernel into the device's stream; an error names `operation`. No block: nothing happens.
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

/// The thread's number in a one-dimensional launch, and how many there are.
__device__ inline int64_t global_thread() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline int64_t global_threads() { return int64_t{gridDim.x} * blockDim.x; }

}  // namespace tern::cuda
