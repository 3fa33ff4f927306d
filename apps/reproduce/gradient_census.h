#pragma once

#include <cstdint>
#include <vector>

#include "tern/core/tensor.h"

namespace tern {

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

/// How many values a tensor takes.
int64_t count_levels(const Tensor& values);

}  // namespace tern
