#pragma once

#include "tern/kernels/kernel.h"

namespace tern::kernels {

/// y = scale · sum of x over every dimension in which y has extent 1 and x has more. y has the rank and dtype of x and
/// is row-major. Sums are accumulated in f32, or in f64 for f64.
inline constinit Kernel<void(const Tensor& x, double scale, Tensor& y)> sum{"sum"};

/// y = scale·x, repeated along every dimension in which x has extent 1. The ranks are equal.
inline constinit Kernel<void(const Tensor& x, double scale, Tensor& y)> broadcast_to{"broadcast_to"};

}  // namespace tern::kernels
