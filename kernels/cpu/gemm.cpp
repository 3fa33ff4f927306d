#include "tern/kernels/cpu/gemm.h"

#include <algorithm>
#include <span>

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

constexpr int64_t kRows = 24;     // rows of the left factor at a time: whole tiles for every vector width
constexpr int64_t kDepth = 2048;  // inner dimension per pass, so that the packed panels of a pass stay in cache
constexpr int64_t kPanels = 16;   // panels of the right factor per block of C
constexpr int64_t kSum = 128;     // inner dimension per pass of `own_sgemm`: short sums have smaller rounding errors

int64_t divide_up(int64_t value, int64_t step) { return (value + step - 1) / step; }

/// pack [panel, k, width] = op(B) in panels of `width` columns, with zeros in the last one.
void pack_panels(const Gemm& gemm, const float* b, int64_t width, float* pack) {
  const int64_t n = gemm.n, k = gemm.k, ldb = gemm.ldb != 0 ? gemm.ldb : gemm.transpose_b ? k : n;
  const int64_t row_step = gemm.transpose_b ? 1 : ldb, column_step = gemm.transpose_b ? ldb : 1;
  parallel_for(0, divide_up(n, width), 1, [=](int64_t first, int64_t last) {
    for (int64_t panel = first; panel < last; ++panel)
      for (int64_t row = 0; row < k; ++row) {
        const float* from = b + row * row_step + panel * width * column_step;
        float* to = pack + (panel * k + row) * width;
        for (int64_t j = 0; j < width; ++j) to[j] = panel * width + j < n ? from[j * column_step] : 0.0f;
      }
  });
}

}  // namespace

// A is read in place. B is copied once, into the panels that `simd.multiply` expects. Each thread computes some blocks
// of C.
void own_sgemm(const Gemm& gemm, const float* a, const float* b, float* c) {
  if (gemm.m == 0 || gemm.n == 0) return;
  const int64_t m = gemm.m, n = gemm.n, k = gemm.k, ldc = gemm.ldc != 0 ? gemm.ldc : n;
  if (k == 0 || (gemm.beta != 0 && gemm.beta != 1)) scale_rows(gemm, ldc, c);
  if (k == 0) return;
  const auto& simd = simd::kernels();
  const int64_t width = 2 * simd.width, panels = divide_up(n, width);
  const Tensor packed = Tensor::empty({panels, k, width});
  float* pack = packed.data<float>();
  pack_panels(gemm, b, width, pack);

  const int64_t lda = gemm.lda != 0 ? gemm.lda : gemm.transpose_a ? m : k;
  const int64_t a_row = gemm.transpose_a ? 1 : lda, a_depth = gemm.transpose_a ? lda : 1;
  const int64_t row_blocks = divide_up(m, kRows), column_blocks = divide_up(panels, kPanels);
  parallel_for(0, row_blocks * column_blocks, 1, [=, &simd](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const int64_t row = block / column_blocks * kRows, panel = block % column_blocks * kPanels;
      const int64_t column = panel * width;
      for (int64_t depth = 0; depth < k; depth += kSum)
        simd.multiply({.rows = std::min(kRows, m - row),
                       .columns = std::min(kPanels * width, n - column),
                       .depth = std::min(kSum, k - depth),
                       .a = a + row * a_row + depth * a_depth,
                       .a_row = a_row,
                       .a_depth = a_depth,
                       .b = pack + (panel * k + depth) * width,
                       .b_row = width,
                       .b_panel = k * width,
                       .c = c + row * ldc + column,
                       .c_row = ldc,
                       .accumulate = depth > 0 || gemm.beta != 0});
    }
  });
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
