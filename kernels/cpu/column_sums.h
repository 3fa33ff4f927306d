#pragma once

#include <algorithm>
#include <cstdint>

#include "tern/kernels/cpu/vector.h"

namespace tern::cpu {

/// sums[c] = scale · Σ x[r, c] over the rows of x [rows, columns], each column in one fixed order: blocks of 64 rows,
/// then the blocks' sums, so that rounding grows with the length of neither alone.
template <class T>
void column_sums(const T* x, int64_t rows, int64_t columns, float scale, float* sums) {
  constexpr int64_t kWidth = 64, kBlock = 64;
  const int64_t strips = (columns + kWidth - 1) / kWidth;
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, rows * kWidth));
  parallel_vectorized(strips, grain, [=](int64_t first, int64_t last) {
    for (int64_t strip = first; strip < last; ++strip) {
      const int64_t begin = strip * kWidth, width = std::min(kWidth, columns - begin);
      float total[kWidth] = {};
      for (int64_t block = 0; block < rows; block += kBlock) {
        float partial[kWidth] = {};
        for (int64_t row = block; row < std::min(block + kBlock, rows); ++row) {
          const T* in = x + row * columns + begin;
#pragma omp simd
          for (int64_t c = 0; c < width; ++c) partial[c] += load(in + c);
        }
#pragma omp simd
        for (int64_t c = 0; c < width; ++c) total[c] += partial[c];
      }
#pragma omp simd
      for (int64_t c = 0; c < width; ++c) sums[begin + c] = scale * total[c];
    }
  });
}

}  // namespace tern::cpu
