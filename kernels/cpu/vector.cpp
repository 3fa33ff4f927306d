#include "tern/kernels/cpu/vector.h"

#include <algorithm>
#include <atomic>

namespace tern::cpu {
namespace {

constinit std::atomic<VectorSet> widest{VectorSet::avx512};

VectorSet of_processor() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? VectorSet::avx512 : avx2 ? VectorSet::avx2 : VectorSet::baseline;
}

}  // namespace

VectorSet vector_set() {
  static const VectorSet processor = of_processor();
  return std::min(processor, widest.load(std::memory_order_relaxed));
}

NarrowerVectors::NarrowerVectors(VectorSet set) { widest = set; }
NarrowerVectors::~NarrowerVectors() { widest = VectorSet::avx512; }

}  // namespace tern::cpu
