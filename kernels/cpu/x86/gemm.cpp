#include "tern/kernels/cpu/gemm.h"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "tern/core/error.h"

namespace tern::cpu {

void sgemm(const Gemm& gemm, const float* a, const float* b, float* c) {
  if (gemm.m == 0 || gemm.n == 0) return;
  if (gemm.k == 0) return own_sgemm(gemm, a, b, c);  // oneDNN writes nothing
  const auto dense = [](int64_t given, int64_t columns) { return given != 0 ? given : std::max<int64_t>(columns, 1); };
  const dnnl_status_t status =
      dnnl_sgemm(gemm.transpose_a ? 'T' : 'N', gemm.transpose_b ? 'T' : 'N', gemm.m, gemm.n, gemm.k, 1.0f, a,
                 dense(gemm.lda, gemm.transpose_a ? gemm.m : gemm.k), b,
                 dense(gemm.ldb, gemm.transpose_b ? gemm.k : gemm.n), gemm.beta, c, dense(gemm.ldc, gemm.n));
  check(status == dnnl_success, "sgemm: oneDNN returned status ", static_cast<int>(status), " for m ", gemm.m, ", n ",
        gemm.n, ", k ", gemm.k);
}

}  // namespace tern::cpu
