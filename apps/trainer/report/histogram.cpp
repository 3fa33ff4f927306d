#include "tern/trainer/report/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tern::trainer {

Histogram make_histogram(const Tensor& values) {
  const std::vector<double> all = values.to_vector<double>();
  Histogram found = {.low = std::numeric_limits<double>::infinity(), .high = -std::numeric_limits<double>::infinity()};
  for (const double value : all) {
    if (!std::isfinite(value)) {
      ++found.not_finite;
      continue;
    }
    ++found.finite;
    found.low = std::min(found.low, value);
    found.high = std::max(found.high, value);
    found.sum += value;
    found.squares += value * value;
  }
  if (found.finite == 0) return {.not_finite = found.not_finite};
  const double width = found.high - found.low;
  const int64_t intervals = width > 0 ? Histogram::kIntervals : 1;
  found.counts.resize(static_cast<size_t>(intervals));
  for (const double value : all) {
    if (!std::isfinite(value)) continue;
    const double share = width > 0 ? (value - found.low) / width : 0;
    const auto place = static_cast<int64_t>(share * static_cast<double>(intervals));
    ++found.counts[static_cast<size_t>(std::min(place, intervals - 1))];
  }
  return found;
}

}  // namespace tern::trainer
