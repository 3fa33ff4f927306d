#include "tern/apps/reproduce/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tern::reproduce {

Sample summarize(std::span<const double> values) {
  Sample sample = {.count = values.size()};
  const auto count = static_cast<double>(values.size());
  for (const double value : values) sample.mean += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - sample.mean) * (value - sample.mean);
  if (values.size() > 1) sample.deviation = std::sqrt(squares / (count - 1));
  return sample;
}

std::vector<std::pair<double, double>> block_means(std::span<const double> values, size_t count) {
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

std::string mean_cell(const Sample& sample) {
  if (sample.count == 0) return "–";
  const std::string mean = fmt::format("{:.2f}", sample.mean);
  return sample.count > 1 ? mean + fmt::format(" ± {:.2f}", sample.standard_error()) : mean;
}

std::string accuracy_cell(const std::vector<double>& values, int64_t seeds) {
  const std::string mean = mean_cell(summarize(values));
  return values.empty() || std::ssize(values) >= seeds ? mean : mean + fmt::format(" ({} of {})", values.size(), seeds);
}

std::string difference_cell(const Sample& first, const Sample& second) {
  const std::string text = fmt::format("{:+.2f}", first.mean - second.mean);
  if (first.count < 2 || second.count < 2) return text;
  return text + fmt::format(" ± {:.2f}", std::hypot(first.standard_error(), second.standard_error()));
}

void set_accuracy_axes(trainer::Chart& chart, int64_t steps) {
  const auto found = trainer::extent(chart.series);
  if (!found) return;
  chart.y_suffix = " %";
  chart.x_range = {0, static_cast<double>(steps)};
  chart.y_range = {found->first - 1, found->second + 1};
}

}  // namespace tern::reproduce
