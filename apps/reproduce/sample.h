#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace tern {

/// What a number of equal measurements says.
struct Sample {
  size_t count = 0;
  double mean = 0;
  double deviation = 0;  ///< with n − 1; 0 for fewer than two

  /// Of the mean.
  double standard_error() const { return count > 0 ? deviation / std::sqrt(static_cast<double>(count)) : 0; }
};

inline Sample summarize(std::span<const double> values) {
  Sample sample = {.count = values.size()};
  const auto count = static_cast<double>(values.size());
  for (const double value : values) sample.mean += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - sample.mean) * (value - sample.mean);
  if (values.size() > 1) sample.deviation = std::sqrt(squares / (count - 1));
  return sample;
}

}  // namespace tern
