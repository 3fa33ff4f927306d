#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace tern {

/// A line through numbers that were taken step by step, from step 1: at most `count` points, each the mean of equally
/// many neighbours at their last step.
inline std::vector<std::pair<double, double>> block_means(std::span<const double> values, size_t count) {
  const size_t width = std::max<size_t>(1, (values.size() + count - 1) / count);
  std::vector<std::pair<double, double>> points;
  for (size_t begin = 0; begin < values.size(); begin += width) {
    const auto block = values.subspan(begin, std::min(width, values.size() - begin));
    double sum = 0;
    for (const double value : block) sum += value;
    points.emplace_back(static_cast<double>(begin + block.size()), sum / static_cast<double>(block.size()));
  }
  return points;
}

}  // namespace tern
