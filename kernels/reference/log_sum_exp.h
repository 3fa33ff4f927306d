#pragma once

#include <algorithm>
#include <cmath>

#include "tern/core/visit.h"

namespace tern::reference {

/// log Σ exp(x), shifted by the largest element so that nothing overflows.
template <class T>
wider_t<T> log_sum_exp(const T* x, int64_t count) {
  using Wide = wider_t<T>;
  Wide largest = x[0], sum = 0;
  for (int64_t i = 1; i < count; ++i) largest = std::max(largest, Wide(x[i]));
  for (int64_t i = 0; i < count; ++i) sum += std::exp(x[i] - largest);
  return largest + std::log(sum);
}

}  // namespace tern::reference
