#pragma once

#include <algorithm>
#include <cstdint>

#include "tern/kernels/cpu/vector.h"

namespace tern::cpu {

/// y[o, c] = Σ over r of x[o, r, c], in a fixed order: sums 64 rows at a time, then adds these sums. The
/// rounding error then grows with neither the 64 rows nor the number of blocks alone.
inline void column_sums(const float* x, int64_t outer, int64_t rows, int64_t columns, float* y) {
  constexpr int64_t kWidth = 64, kRows = 64;
  const int64_t strips = (columns + kWidth - 1) / kWidth;
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, rows * std::min(columns, kWidth)));
  parallel_vectorized(outer * strips, grain, [=](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t o = i / strips, begin = i % strips * kWidth, width = std::min(kWidth, columns - begin);
      float total[kWidth] = {};
      for (int64_t block = 0; block < rows; block += kRows) {
        float partial[kWidth] = {};
        for (int64_t row = block; row < std::min(block + kRows, rows); ++row) {
          const float* in = x + (o * rows + row) * columns + begin;
#pragma omp simd
          for (int64_t c = 0; c < width; ++c) partial[c] += in[c];
        }
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) total[c] += partial[c];
      }
      std::copy_n(total, width, y + o * columns + begin);
    }
  });
}

}  // namespace tern::cpu
