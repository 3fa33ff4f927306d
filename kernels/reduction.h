#pragma once

#include "tern/kernels/kernel.h"

namespace tern::kernels {

/// y = scale · the sum of x over every dimension where y has extent 1 and x has more. y has x's rank
/// and dtype and is row-major; sums are held in f32, or f64 for f64.
inline constinit Kernel<void(const Tensor& x, double scale, Tensor& y)> sum{"sum"};

/// y = scale·x repeated along every dimension where x has extent 1; equal ranks.
inline constinit Kernel<void(const Tensor& x, double scale, Tensor& y)> broadcast_to{"broadcast_to"};

}  // namespace tern::kernels
