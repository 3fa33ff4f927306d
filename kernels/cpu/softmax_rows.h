#pragma once

#include <algorithm>
#include <cmath>

#include "tern/kernels/cpu/exponential.h"
#include "tern/kernels/cpu/map.h"

namespace tern::cpu {

/// Calls body(row) for every row of a matrix with `columns` columns, vectorised and over the threads.
template <class Body>
void for_each_row(int64_t rows, int64_t columns, Body body) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, 8 * columns));
  parallel_vectorized(rows, grain, [=](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) body(row);
  });
}

template <class T>
float row_maximum(const T* x, int64_t columns) {
  float maximum = load(x);
#pragma omp simd reduction(max : maximum)
  for (int64_t j = 0; j < columns; ++j) maximum = std::max(maximum, load(x + j));
  return maximum;
}

/// Writes e^(x - shift) to y and returns the sum.
template <class T, class U>
float exponentials(const T* x, float shift, int64_t columns, U* y) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < columns; ++j) {
    const float e = exponential(load(x + j) - shift);
    store(y + j, e);
    sum += e;
  }
  return sum;
}

}  // namespace tern::cpu
