#include "tern/kernels/cpu/gemm.h"

namespace tern::cpu {

void sgemm(const Gemm& gemm, const float* a, const float* b, float* c) { own_sgemm(gemm, a, b, c); }

}  // namespace tern::cpu
