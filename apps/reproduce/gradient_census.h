#pragma once

#include <cstdint>
#include <vector>

#include "tern/core/tensor.h"

namespace tern::reproduce {

/// Of a tensor whose values are counted in units of `unit`: the shares that lie in `bins` equal bins from −`width` to
/// `width`; what lies beyond counts in the first or last.
std::vector<double> histogram(const Tensor& values, double unit, double width, size_t bins);

/// The share of elements that are 0.
double share_of_zeros(const Tensor& values);

/// What clipping takes from a vector: of its length (a share), and from its direction (degrees).
struct ClippingLoss {
  double length = 0, degrees = 0;
};
ClippingLoss clipping_loss(const Tensor& original, const Tensor& clipped);
/// Of a long vector of normal values, clipped at `deviations` of theirs. More than that is lost by heavier tails.
ClippingLoss normal_clipping_loss(double deviations);

/// The fourth moment over the square of the second, about zero: 3 of normal values, more where tails are heavier.
double kurtosis(const Tensor& values);

/// How many values a tensor takes.
int64_t count_levels(const Tensor& values);

}  // namespace tern::reproduce
