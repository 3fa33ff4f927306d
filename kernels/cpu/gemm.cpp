#include "tern/kernels/cpu/gemm.h"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <span>

#include "tern/core/error.h"

namespace tern::cpu {
namespace {

/// C = beta·C
void scale_rows(const Gemm& gemm, int64_t ldc, float* c) {
  for (int64_t row = 0; row < gemm.m; ++row)
    for (float& value : std::span(c + row * ldc, static_cast<size_t>(gemm.n)))
      value = gemm.beta == 0 ? 0 : gemm.beta * value;
}

}  // namespace

void sgemm(const Gemm& gemm, const float* a, const float* b, float* c) {
  if (gemm.m == 0 || gemm.n == 0) return;
  const auto dense = [](int64_t given, int64_t columns) { return given != 0 ? given : std::max<int64_t>(columns, 1); };
  if (gemm.k == 0) return scale_rows(gemm, dense(gemm.ldc, gemm.n), c);  // oneDNN writes nothing
  const dnnl_status_t status =
      dnnl_sgemm(gemm.transpose_a ? 'T' : 'N', gemm.transpose_b ? 'T' : 'N', gemm.m, gemm.n, gemm.k, 1.0f, a,
                 dense(gemm.lda, gemm.transpose_a ? gemm.m : gemm.k), b,
                 dense(gemm.ldb, gemm.transpose_b ? gemm.k : gemm.n), gemm.beta, c, dense(gemm.ldc, gemm.n));
  check(status == dnnl_success, "sgemm: oneDNN returned status ", static_cast<int>(status), " for m ", gemm.m, ", n ",
        gemm.n, ", k ", gemm.k);
}

}  // namespace tern::cpu
