#include "tern/kernels/cpu/vector.h"
#include "tern/kernels/cpu/x86/kernels.h"

namespace tern::cpu {

VectorSet detail::processor_vector_set() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? VectorSet::avx512 : avx2 ? VectorSet::avx2 : VectorSet::baseline;
}

const simd::Kernels& simd::kernels() {
  switch (vector_set()) {
    case VectorSet::baseline: break;
    case VectorSet::avx2: return avx2_kernels;
    case VectorSet::avx512: return avx512_kernels;
  }
  return baseline_kernels;
}

}  // namespace tern::cpu
