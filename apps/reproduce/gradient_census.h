#pragma once

#include <cstdint>
#include <vector>

#include "tern/core/tensor.h"

namespace tern::reproduce {

/// A histogram of `values` in units of `unit`: the fraction of values in each of `bins` equal bins from −`width` to
/// `width`. Values outside count in the first or last bin.
std::vector<double> histogram(const Tensor& values, double unit, double width, size_t bins);

/// The fraction of elements that are 0.
double share_of_zeros(const Tensor& values);

/// The effect of clipping on a vector: the lost fraction of its length, and the change of its direction in degrees.
struct ClippingLoss {
  double length = 0, degrees = 0;
};
ClippingLoss clipping_loss(const Tensor& original, const Tensor& clipped);
/// The same for a long vector of normal values, clipped at `deviations` standard deviations. Heavier tails lose more.
ClippingLoss normal_clipping_loss(double deviations);

/// The fourth moment over the square of the second moment, about zero: 3 for normal values, more for heavier tails.
double kurtosis(const Tensor& values);

/// The number of different values in a tensor.
int64_t count_levels(const Tensor& values);

}  // namespace tern::reproduce
