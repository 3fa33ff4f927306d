#include "tern/apps/reproduce/gradient_census.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

namespace tern::reproduce {

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

namespace {

/// From the squared lengths of two vectors and their dot product.
ClippingLoss clipping_loss(double original, double clipped, double dot) {
  if (original == 0 || clipped == 0) return {};
  const double cosine = std::min(1.0, dot / std::sqrt(original * clipped));
  return {.length = 1 - std::sqrt(clipped / original), .degrees = std::acos(cosine) * 180 / std::numbers::pi};
}

}  // namespace

ClippingLoss clipping_loss(const Tensor& original, const Tensor& clipped) {
  const auto g = original.span<float>(), c = clipped.span<float>();
  double gg = 0, cc = 0, gc = 0;
  for (size_t i = 0; i < g.size(); ++i) {
    const double x = g[i], y = c[i];
    gg += x * x;
    cc += y * y;
    gc += x * y;
  }
  return clipping_loss(gg, cc, gc);
}

ClippingLoss normal_clipping_loss(double deviations) {
  // For a normal x with density φ and both tails Q beyond c: E[clip(x)²] = 1 − (1 − c²) Q − 2 c φ(c), E[x clip(x)] = 1
  // − Q.
  const double c = deviations, tails = std::erfc(c / std::numbers::sqrt2);
  const double density = std::exp(-c * c / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return clipping_loss(1, 1 - (1 - c * c) * tails - 2 * c * density, 1 - tails);
}

double kurtosis(const Tensor& values) {
  double second = 0, fourth = 0;
  for (const float x : values.span<float>()) {
    const double square = double{x} * x;
    second += square;
    fourth += square * square;
  }
  return second == 0 ? 0 : fourth * static_cast<double>(values.numel()) / (second * second);
}

int64_t count_levels(const Tensor& values) {
  const auto all = values.span<float>();
  return static_cast<int64_t>(std::set<float>(all.begin(), all.end()).size());
}

}  // namespace tern::reproduce
