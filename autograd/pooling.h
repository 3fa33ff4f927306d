#pragma once

#include "tern/autograd/variable.h"
#include "tern/kernels/pooling.h"

namespace tern {

using kernels::Extent2;
using kernels::PoolGeometry;

/// The greatest element of every window of x [N, C, H, W]; windows of at most 255 elements.
Variable max_pool2d(const Variable& x, const PoolGeometry& geometry = {});
/// The mean of every window.
Variable average_pool2d(const Variable& x, const PoolGeometry& geometry = {});
/// The mean of every channel: [N, C, 1, 1].
Variable global_average_pool2d(const Variable& x);

}  // namespace tern
