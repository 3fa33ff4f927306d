#pragma once

#include <array>
#include <span>

#include "tern/kernels/kernel.h"

namespace tern::kernels {

/// y = x, converted to the dtype and format of y.
inline constinit Kernel<void(const Tensor& x, Tensor& y)> convert{"convert"};

/// y = x with two dimensions exchanged. Row-major.
inline constinit Kernel<void(const Tensor& x, int first, int second, Tensor& y)> transpose{"transpose"};

/// The position of a block in a larger tensor of the same rank: the block's first index along each dimension.
using Offsets = std::array<int64_t, Shape::kMaxRank>;

/// y[i] = x[offset + i] for every index i of y. Used for slicing, and for the backward of padding and concatenation.
inline constinit Kernel<void(const Tensor& x, const Offsets&, Tensor& y)> extract{"extract"};
/// y[offset + i] = x[i] for every index i of x. The rest of y does not change. Used for concatenation, padding and the
/// backward of slicing.
inline constinit Kernel<void(const Tensor& x, const Offsets&, Tensor& y)> insert{"insert"};

/// Sets every element of x to `value`.
inline constinit Kernel<void(Tensor& x, double value)> fill{"fill"};

}  // namespace tern::kernels
