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

/// What a number of equal measurements says.
struct Sample {
  size_t count = 0;
  double mean = 0;
  double deviation = 0;  ///< with n − 1; 0 for fewer than two

  /// Of the mean.
  double standard_error() const { return count > 0 ? deviation / std::sqrt(static_cast<double>(count)) : 0; }
};

Sample summarize(std::span<const double> values);

/// A line through numbers that were taken step by step, from step 1: at most `count` points, each the mean of equally
/// many neighbours at their last step.
std::vector<std::pair<double, double>> block_means(std::span<const double> values, size_t count);

// Cells of a table of accuracies, in percent; "–" where nothing has ended.

/// The mean, with the deviation of several.
std::string mean_cell(const Sample& sample);

/// Their mean, with the deviation of several, and how many of `seeds` they are where some are missing.
std::string accuracy_cell(const std::vector<double>& values, int64_t seeds);

/// `first` − `second`, of which neither is empty, with the standard error of a difference of independent means.
std::string difference_cell(const Sample& first, const Sample& second);

/// Axes of a chart of accuracies in percent: from step 0 to the last, and a point beyond the lowest and the highest.
void set_accuracy_axes(trainer::Chart& chart, int64_t steps);

}  // namespace tern::reproduce
