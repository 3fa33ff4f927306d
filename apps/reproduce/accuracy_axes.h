#pragma once

#include <algorithm>
#include <cstdint>

#include "tern/apps/trainer/chart.h"

namespace tern {

/// Axes of a chart of accuracies in percent: from step 0 to the last, and a point beyond the lowest and the highest.
inline void set_accuracy_axes(Chart& chart, int64_t steps) {
  double low = 100, high = 0;
  for (const Series& series : chart.series)
    for (const auto& [step, accuracy] : series.points) {
      low = std::min(low, accuracy);
      high = std::max(high, accuracy);
    }
  if (low > high) return;
  chart.y_suffix = " %";
  chart.x_range = {0, static_cast<double>(steps)};
  chart.y_range = {low - 1, high + 1};
}

}  // namespace tern
