#include "tern/apps/reproduce/gradient_census.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

namespace tern {

std::vector<double> histogram(const Tensor& values, double unit, double width, size_t bins) {
  std::vector<double> shares(bins);
  const auto all = values.span<float>();
  const double one = 1 / static_cast<double>(all.size()), scale = static_cast<double>(bins) / (2 * width);
  for (const float x : all) {
    const double place = unit > 0 ? (x / unit + width) * scale : width * scale;
    shares[static_cast<size_t>(std::clamp(place, 0.0, static_cast<double>(bins - 1)))] += one;
  }
  return shares;
}

double share_of_zeros(const Tensor& values) {
  const auto all = values.span<float>();
  return static_cast<double>(std::ranges::count(all, 0.0f)) / static_cast<double>(all.size());
}

ClippingLoss clipping_loss(const Tensor& original, const Tensor& clipped) {
  const auto g = original.span<float>(), c = clipped.span<float>();
  double gg = 0, cc = 0, gc = 0;
  for (size_t i = 0; i < g.size(); ++i) {
    const double x = g[i], y = c[i];
    gg += x * x;
    cc += y * y;
    gc += x * y;
  }
  if (gg == 0 || cc == 0) return {};
  const double cosine = std::min(1.0, gc / std::sqrt(gg * cc));
  return {.length = 1 - std::sqrt(cc / gg), .degrees = std::acos(cosine) * 180 / std::numbers::pi};
}

int64_t count_levels(const Tensor& values) {
  const auto all = values.span<float>();
  return static_cast<int64_t>(std::set<float>(all.begin(), all.end()).size());
}

}  // namespace tern
