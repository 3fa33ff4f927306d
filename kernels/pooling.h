#pragma once

#include "tern/kernels/convolution.h"

namespace tern::kernels {

/// A pooling window over H and W, as in PyTorch.
struct PoolGeometry {
  Extent2 window = 2;
  Extent2 stride = 2;
  Extent2 padding = 0;             ///< on each side; at most half the window
  bool ceil_mode = false;          ///< also use windows that begin inside the input but end outside
  bool count_include_pad = false;  ///< averages count padding, but never what ceil_mode adds beyond it
};

/// Returns [N, C, H', W']. Throws an error that says what does not fit.
Shape pool2d_output_shape(const Shape& x, const PoolGeometry& geometry);

/// `where` [N, C, H', W'], u8, in the format of y: the position of the maximum in its window, counted row by row. If
/// several elements are equal, the first one wins. NaN wins over numbers, and the last NaN wins, as in PyTorch. Windows
/// have at most 255 elements.
inline constinit Kernel<void(const Tensor& x, const PoolGeometry&, Tensor& y, Tensor& where)> max_pool2d{"max_pool2d"};
inline constinit Kernel<void(const Tensor& dy, const Tensor& where, const PoolGeometry&, Tensor& dx)>
    max_pool2d_backward{"max_pool2d_backward"};
inline constinit Kernel<void(const Tensor& x, const PoolGeometry&, Tensor& y)> average_pool2d{"average_pool2d"};
inline constinit Kernel<void(const Tensor& dy, const PoolGeometry&, Tensor& dx)> average_pool2d_backward{
    "average_pool2d_backward"};

}  // namespace tern::kernels
