#pragma once

#include <cstdint>

#include "tern/trainer/report/chart.h"

namespace tern {

/// Axes of a chart of accuracies in percent: from step 0 to the last, and a point beyond the lowest and the highest.
inline void set_accuracy_axes(trainer::Chart& chart, int64_t steps) {
  const auto found = extent(chart.series);
  if (!found) return;
  chart.y_suffix = " %";
  chart.x_range = {0, static_cast<double>(steps)};
  chart.y_range = {found->first - 1, found->second + 1};
}

}  // namespace tern
