#include "tern/kernels/cpu/gemm.h"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <span>

#include "tern/core/error.h"
#include "tern/core/parallel.h"
#include "tern/core/tensor.h"
#include "tern/kernels/cpu/simd/kernels.h"

namespace tern::cpu {
namespace {

/// C = beta·C
void scale_rows(const Gemm& gemm, int64_t ldc, float* c) {
  for (int64_t row = 0; row < gemm.m; ++row)
    for (float& value : std::span(c + row * ldc, static_cast<size_t>(gemm.n)))
      value = gemm.beta == 0 ? 0 : gemm.beta * value;
}

constexpr int64_t kRows = 24;     // rows of the weights at a time: whole tiles for every vector width
constexpr int64_t kDepth = 2048;  // inner dimension per pass, so that the packed batch of a pass stays in cache

int64_t divide_up(int64_t value, int64_t step) { return (value + step - 1) / step; }

}  // namespace

void sgemm(const Gemm& gemm, const float* a, const float* b, float* c) {
  if (gemm.m == 0 || gemm.n == 0) return;
  const auto dense = [](int64_t given, int64_t columns) { return given != 0 ? given : std::max<int64_t>(columns, 1); };
  if (gemm.k == 0) return scale_rows(gemm, dense(gemm.ldc, gemm.n), c);  // oneDNN writes nothing if k is 0
  const dnnl_status_t status =
      dnnl_sgemm(gemm.transpose_a ? 'T' : 'N', gemm.transpose_b ? 'T' : 'N', gemm.m, gemm.n, gemm.k, 1.0f, a,
                 dense(gemm.lda, gemm.transpose_a ? gemm.m : gemm.k), b,
                 dense(gemm.ldb, gemm.transpose_b ? gemm.k : gemm.n), gemm.beta, c, dense(gemm.ldc, gemm.n));
  check(status == dnnl_success, "sgemm: oneDNN returned status ", static_cast<int>(status), " for m ", gemm.m, ", n ",
        gemm.n, ", k ", gemm.k);
}

bool suits_batch_product(const BatchProduct& shape) {
  return shape.batch >= 8 && shape.batch <= 256 && shape.in * shape.out >= int64_t{1} << 20;
}

// Computes yᵀ = w · xᵀ, so that w is read row by row without a copy.
void batch_forward(const BatchProduct& shape, const float* x, const float* w, float* y) {
  const int64_t batch = shape.batch, in = shape.in, out = shape.out;
  const auto& simd = simd::kernels();
  const int64_t width = 2 * simd.width, panels = divide_up(batch, width), padded = panels * width;
  // xᵀ as [panel][in][width], and yᵀ as [out][padded].
  const Tensor packed = Tensor::empty({panels, in, width}), transposed = Tensor::empty({out, padded});
  float *pack = packed.data<float>(), *sums = transposed.data<float>();
  parallel_for(0, padded, 1, [=](int64_t first, int64_t last) {
    for (int64_t n = first; n < last; ++n)
      for (int64_t k = 0; k < in; ++k)
        pack[(n / width * in + k) * width + n % width] = n < batch ? x[n * in + k] : 0.0f;
  });
  parallel_for(0, divide_up(out, kRows), 1, [=, &simd](int64_t first, int64_t last) {
    const int64_t begin = first * kRows, end = std::min(out, last * kRows);
    for (int64_t k = 0; k < in; k += kDepth)
      for (int64_t row = begin; row < end; row += kRows)
        simd.multiply({.rows = std::min(kRows, end - row),
                       .columns = padded,
                       .depth = std::min(kDepth, in - k),
                       .a = w + row * in + k,
                       .a_row = in,
                       .b = pack + k * width,
                       .b_row = width,
                       .b_panel = in * width,
                       .c = sums + row * padded,
                       .c_row = padded,
                       .accumulate = k > 0});
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t row = begin; row < end; ++row) y[n * out + row] = sums[row * padded + n];
  });
}

}  // namespace tern::cpu
