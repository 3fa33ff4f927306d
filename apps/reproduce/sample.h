#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tern/trainer/report/chart.h"

namespace tern::reproduce {

/// Statistics of repeated measurements.
struct Sample {
  size_t count = 0;
  double mean = 0;
  double deviation = 0;  ///< standard deviation, with n − 1; 0 for fewer than two

  /// The standard error of the mean.
  double standard_error() const { return count > 0 ? deviation / std::sqrt(static_cast<double>(count)) : 0; }
};

Sample summarize(std::span<const double> values);

/// A line through values of steps 1, 2, ...: at most `count` points. Each is the mean of a block of values, at the
/// block's last step.
std::vector<std::pair<double, double>> block_means(std::span<const double> values, size_t count);

// Cells for a table of accuracies, in percent; "–" if no run has finished.

/// The mean; with its standard error if there are several values.
std::string mean_cell(const Sample& sample);

/// `mean_cell` of the values; if some of the `seeds` are missing, also their number.
std::string accuracy_cell(const std::vector<double>& values, int64_t seeds);

/// `first` − `second`, with the standard error of a difference of independent means. Neither may be empty.
std::string difference_cell(const Sample& first, const Sample& second);

/// Sets the axes of a chart of accuracies in percent: from step 0 to `steps`, and 1 point beyond the lowest and
/// highest.
void set_accuracy_axes(trainer::Chart& chart, int64_t steps);

}  // namespace tern::reproduce
