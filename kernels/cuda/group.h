#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace tern::cuda {

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

/// Folds one value of each of `Group` neighbouring threads, a warp or the whole block, by a fixed tree; all get the
/// result. All threads of the block call it together.
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
