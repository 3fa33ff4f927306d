#pragma once

#include <cstdint>

namespace tern::cpu {

/// A product of row-major f32 matrices, C [m, n] = op(A) [m, k] · op(B) [k, n] + beta·C. A leading dimension is the
/// number of elements from one stored row to the next. A transposed operand is stored as [k, m] (A) or [n, k] (B).
struct Gemm {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  int64_t lda = 0, ldb = 0, ldc = 0;  ///< 0: rows without gaps
  float beta = 0;                     ///< if 0, C is not read
};

/// The product by oneDNN on x86, and `own_sgemm` elsewhere. Runs on all threads of `parallel_for`; inside its body, on
/// the calling thread only. Throws `Error` if oneDNN reports one.
void sgemm(const Gemm& gemm, const float* a, const float* b, float* c);

/// The product by tern's own loops, for any processor. Threads as in `sgemm`. The bits do not depend on their number.
void own_sgemm(const Gemm& gemm, const float* a, const float* b, float* c);

/// A layer's product of a batch of few rows with a large matrix of weights w [out, in].
struct BatchProduct {
  int64_t batch, in, out;
};

/// Whether `batch_forward` is faster than the product of a library. A library copies the weights before it multiplies.
/// That is slow if there are many weights and few rows.
bool suits_batch_product(const BatchProduct& shape);

/// y [batch, out] = x [batch, in] · wᵀ. All matrices are dense and row-major. The weights are read once and not copied.
void batch_forward(const BatchProduct& shape, const float* x, const float* w, float* y);

}  // namespace tern::cpu
