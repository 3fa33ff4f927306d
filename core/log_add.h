#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace tern {

/// log(exp(a) + exp(b)) without overflow. a and b are logarithms of probabilities: -infinity is the logarithm of 0.
/// NaN gives NaN.
inline double log_add(double a, double b) {
  constexpr double kImpossible = -std::numeric_limits<double>::infinity();
  if (a == kImpossible) return b;
  if (b == kImpossible) return a;
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

}  // namespace tern
