#pragma once

#include <array>
#include <span>

#include "tern/kernels/kernel.h"
#include "tern/kernels/options.h"

namespace tern::kernels {

/// y = x, converted to the dtype and format of y.
inline constinit Kernel<void(const Tensor& x, Tensor& y)> convert{"convert"};

/// y = x in the dtype and format of y.
struct Conversion {
  Tensor x, y;
};
inline const Tensor& placement(std::span<const Conversion> conversions) {
  static const Tensor undefined;
  return conversions.empty() ? undefined : conversions.front().x;
}
/// All conversions, on CUDA from f32 and in one launch. For parameters and their gradients, most of which are small.
inline constinit Kernel<void(std::span<const Conversion>)> convert_all{"convert_all"};

/// The dimensions of a tensor in another order.
using Order = std::array<int, Shape::kMaxRank>;
inline constexpr Order kInOrder = {0, 1, 2, 3, 4, 5, 6, 7};

/// y = x with its dimensions in another order: dimension i of y is dimension order[i] of x. Row-major.
inline constinit Kernel<void(const Tensor& x, const Order&, Tensor& y)> permute{"permute"};

/// The position of a block in a larger tensor of the same rank: the block's first index along each dimension.
using Offsets = std::array<int64_t, Shape::kMaxRank>;

/// y[i] = x[offset + i] for every index i of y. Used for slicing, and for the backward of padding and concatenation.
inline constinit Kernel<void(const Tensor& x, const Offsets&, Tensor& y)> extract{"extract"};
/// y[offset + i] = x[i] for every index i of x. The rest of y does not change. Used for concatenation, padding and the
/// backward of slicing.
inline constinit Kernel<void(const Tensor& x, const Offsets&, Tensor& y)> insert{"insert"};

/// y [..., H + top + bottom, W + left + right] = x [..., H, W] and its mirror image around it. The edge itself is not
/// repeated. Row-major. top and bottom are below H, left and right below W.
inline constinit Kernel<void(const Tensor& x, const Border&, Tensor& y)> reflection_pad{"reflection_pad"};
/// dx = the sums of dy over the copies of each element.
inline constinit Kernel<void(const Tensor& dy, const Border&, Tensor& dx)> reflection_pad_backward{
    "reflection_pad_backward"};

/// Sets every element of x to `value`.
inline constinit Kernel<void(Tensor& x, double value)> fill{"fill"};

}  // namespace tern::kernels
