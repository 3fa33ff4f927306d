#pragma once

#include <array>
#include <span>

#include "tern/kernels/kernel.h"

namespace tern::kernels {

/// y = x in y's dtype and format.
inline constinit Kernel<void(const Tensor& x, Tensor& y)> convert{"convert"};

/// y = x with two dimensions exchanged; row-major.
inline constinit Kernel<void(const Tensor& x, int first, int second, Tensor& y)> transpose{"transpose"};

/// Where a block lies inside a larger tensor of the same rank: its first index along each dimension.
using Offsets = std::array<int64_t, Shape::kMaxRank>;

/// y[i] = x[offset + i] for every index i of y: slicing, and the backward of padding and concatenation.
inline constinit Kernel<void(const Tensor& x, const Offsets&, Tensor& y)> extract{"extract"};
/// y[offset + i] = x[i] for every index i of x; the rest of y stays. Concatenation, padding, the backward of slicing.
inline constinit Kernel<void(const Tensor& x, const Offsets&, Tensor& y)> insert{"insert"};

/// x = value everywhere.
inline constinit Kernel<void(Tensor& x, double value)> fill{"fill"};

}  // namespace tern::kernels
