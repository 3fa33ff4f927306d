#pragma once

#include <cstdint>
#include <vector>

#include "tern/core/tensor.h"

namespace tern::trainer {

/// The distribution of a tensor's elements: the finite ones, counted in intervals of equal width from `low` to `high`.
struct Histogram {
  double low = 0, high = 0;     ///< smallest and largest finite element
  double sum = 0, squares = 0;  ///< of the finite elements, and of their squares
  int64_t finite = 0;           ///< number of finite elements
  int64_t not_finite = 0;       ///< number of the others
  /// One count if `low` equals `high`, else `kIntervals`. The last interval contains `high`. Empty if nothing is
  /// finite.
  std::vector<int64_t> counts = {};

  static constexpr int64_t kIntervals = 50;
};

/// `values`: floating point, of any shape, on any device.
Histogram make_histogram(const Tensor& values);

}  // namespace tern::trainer
