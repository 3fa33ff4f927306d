#pragma once

#include <cstdint>

namespace tern::cpu {

/// A product of row-major f32 matrices, C [m, n] = op(A) [m, k] · op(B) [k, n] + beta·C. Leading dimensions are the
/// elements from one stored row to the next; a transposed operand is stored [k, m] or [n, k].
struct Gemm {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  int64_t lda = 0, ldb = 0, ldc = 0;  ///< 0: rows lie densely
  float beta = 0;                     ///< with 0, C is not read
};

/// On all of `parallel_for`'s threads; on the calling one inside its body. Throws `Error` where the library refuses.
void sgemm(const Gemm& gemm, const float* a, const float* b, float* c);

/// A layer's product of a batch of few rows with a large matrix of weights w [out, in].
struct BatchProduct {
  int64_t batch, in, out;
};

/// Whether `batch_forward` beats a library's product, which copies the weights before it multiplies: many weights, few
/// rows to share that copy.
bool suits_batch_product(const BatchProduct& shape);

/// y [batch, out] = x [batch, in] · wᵀ; all dense and row-major. The weights are read once, where they lie.
void batch_forward(const BatchProduct& shape, const float* x, const float* w, float* y);

}  // namespace tern::cpu
