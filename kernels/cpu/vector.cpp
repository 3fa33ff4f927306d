#include "tern/kernels/cpu/vector.h"

namespace tern::cpu {

VectorSet vector_set() {
  static const VectorSet chosen = [] {
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return avx512 ? VectorSet::avx512 : avx2 ? VectorSet::avx2 : VectorSet::baseline;
  }();
  return chosen;
}

}  // namespace tern::cpu
