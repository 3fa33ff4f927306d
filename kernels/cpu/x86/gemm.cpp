#include "tern/kernels/cpu/gemm.h"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "tern/core/error.h"
#include "tern/core/parallel.h"
#include "tern/core/tensor.h"
#include "tern/kernels/cpu/simd/kernels.h"

namespace tern::cpu {
namespace {

constexpr int64_t kPartRows = 256;  ///< rows of B that are copied at a time
constexpr int64_t kGap = 16;        ///< floats that put neighbouring rows of the copy into different sets of the cache

/// Without AVX-512, oneDNN 2.6 multiplies few rows with B in place. If the rows of B lie a multiple of 2 KiB apart,
/// they share a few sets of the first-level cache. Then it takes up to twice as long as with a copy whose rows have
/// gaps.
bool wants_gaps(const Gemm& gemm) {
  return !gemm.transpose_b && gemm.ldb % 512 == 0 && gemm.n >= 512 && gemm.m >= 16 && gemm.m <= 256 &&
         simd::kernels().width < 16;
}

void multiply(const Gemm& gemm, const float* a, const float* b, float* c) {
  const dnnl_status_t status = dnnl_sgemm(gemm.transpose_a ? 'T' : 'N', gemm.transpose_b ? 'T' : 'N', gemm.m, gemm.n,
                                          gemm.k, 1.0f, a, gemm.lda, b, gemm.ldb, gemm.beta, c, gemm.ldc);
  check(status == dnnl_success, "sgemm: oneDNN returned status ", static_cast<int>(status), " for m ", gemm.m, ", n ",
        gemm.n, ", k ", gemm.k);
}

/// `multiply` in parts of kPartRows rows of B, each copied with gaps first.
void multiply_with_gaps(const Gemm& gemm, const float* a, const float* b, float* c) {
  const Tensor rows = Tensor::empty({std::min(kPartRows, gemm.k), gemm.n + kGap});
  Gemm part = gemm;
  part.ldb = gemm.n + kGap;
  for (int64_t first = 0; first < gemm.k; first += kPartRows, part.beta = 1) {
    part.k = std::min(kPartRows, gemm.k - first);
    parallel_for(0, part.k, 16, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        std::copy_n(b + (first + row) * gemm.ldb, gemm.n, rows.data<float>() + row * part.ldb);
    });
    multiply(part, a + first * (gemm.transpose_a ? gemm.lda : 1), rows.data<float>(), c);
  }
}

}  // namespace

void sgemm(const Gemm& gemm, const float* a, const float* b, float* c) {
  if (gemm.m == 0 || gemm.n == 0) return;
  if (gemm.k == 0) return own_sgemm(gemm, a, b, c);  // oneDNN writes nothing
  const auto dense = [](int64_t given, int64_t columns) { return given != 0 ? given : columns; };
  Gemm whole = gemm;
  whole.lda = dense(gemm.lda, gemm.transpose_a ? gemm.m : gemm.k);
  whole.ldb = dense(gemm.ldb, gemm.transpose_b ? gemm.k : gemm.n);
  whole.ldc = dense(gemm.ldc, gemm.n);
  if (wants_gaps(whole)) return multiply_with_gaps(whole, a, b, c);
  multiply(whole, a, b, c);
}

}  // namespace tern::cpu
