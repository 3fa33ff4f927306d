#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tern/core/error.h"
#include "tern/core/tensor.h"
#include "tern/core/visit.h"
#include "tern/kernels/cuda/alignment.h"

namespace tern::cuda {

/// What one thread moves at once: at most 16 bytes, in one instruction.
template <class T, int Width>
struct alignas(sizeof(T) * Width) Pack {
  T values[Width];
};
inline constexpr int kPackBytes = 16;

template <class T, int Width>
__device__ Pack<T, Width> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, Width>*>(from);
}
template <class T, int Width>
__device__ void store_pack(T* to, const Pack<T, Width>& pack) {
  *reinterpret_cast<Pack<T, Width>*>(to) = pack;
}
/// Rounded to T.
template <class T, int Width>
__device__ void store_pack(T* to, const float (&values)[Width]) {
  Pack<T, Width> rounded;
  for (int k = 0; k < Width; ++k) rounded.values[k] = static_cast<T>(values[k]);
  store_pack(to, rounded);
}

/// As `visit_floating` over f32 and bf16, the dtypes that kernels compute in.
template <class Function>
decltype(auto) visit_fast(DType dtype, const char* operation, Function&& function) {
  check(dtype == DType::f32 || dtype == DType::bf16, operation, ": elements are ", dtype,
        ", on CUDA expected f32 or bf16");
  if (dtype == DType::bf16) return function(BFloat16{});
  return function(float{});
}

}  // namespace tern::cuda
