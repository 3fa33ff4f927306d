#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tern {

/// ⌈ratio·n⌉ of n, at most n. The ratio is a decimal number: 0.07 of 100 is 7, although the product of these doubles is
/// above 7.
inline int64_t share_of(int64_t n, double ratio) {
  constexpr double kSlack = 1e-12;
  return std::min(n, static_cast<int64_t>(std::ceil(ratio * static_cast<double>(n) * (1 - kSlack))));
}

}  // namespace tern
