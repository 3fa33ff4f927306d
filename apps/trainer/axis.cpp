#include "tern/apps/trainer/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tern {
namespace {

/// The step of 1, 2 or 5 times a power of ten nearest above `raw`.
double round_step(double raw) {
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= raw * 0.999) return factor * power;
  return 10 * power;
}

}  // namespace

Axis::Axis(double low, double high, Scale scale) : low_(low), high_(high), scale_(scale) {
  if (high_ > low_) return;
  low_ = scale == Scale::logarithmic ? low / 2 : low - 0.5;
  high_ = scale == Scale::logarithmic ? low * 2 : low + 0.5;
}

double Axis::position(double value) const {
  if (scale_ == Scale::linear) return (value - low_) / (high_ - low_);
  return std::log(std::max(value, low_ * 1e-6) / low_) / std::log(high_ / low_);
}

std::vector<double> Axis::ticks(int count) const {
  return scale_ == Scale::linear ? linear_ticks(count) : logarithmic_ticks(count);
}

std::vector<double> Axis::linear_ticks(int count) const {
  const double step = round_step((high_ - low_) / count);
  std::vector<double> found;
  for (double index = std::ceil(low_ / step - 1e-6); index * step <= high_ + step * 1e-6; ++index)
    found.push_back(index * step);
  return found;
}

std::vector<double> Axis::logarithmic_ticks(int count) const {
  std::vector<double> found;
  const std::vector<std::vector<double>> candidates = {{1, 2, 5}, {1, 3}, {1}};
  for (const auto& factors : candidates) {
    found.clear();
    for (double power = std::pow(10.0, std::floor(std::log10(low_))); power <= high_; power *= 10)
      for (const double factor : factors)
        if (factor * power >= low_ * 0.999 && factor * power <= high_ * 1.001) found.push_back(factor * power);
    if (static_cast<int>(found.size()) <= count + 2) break;
  }
  return found.size() >= 2 ? found : linear_ticks(count);
}

std::string tick_label(double value) {
  const double magnitude = std::abs(value);
  if (magnitude >= 1e6) return fmt::format("{:.4g}M", value / 1e6);
  if (magnitude >= 1e4) return fmt::format("{:.4g}k", value / 1e3);
  if (magnitude >= 1e3 && value == std::round(value))
    return fmt::format("{},{:03}", static_cast<int64_t>(value) / 1000, static_cast<int64_t>(magnitude) % 1000);
  return fmt::format("{:.4g}", magnitude < 1e-12 ? 0.0 : value);
}

}  // namespace tern
