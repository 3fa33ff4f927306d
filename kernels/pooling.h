#pragma once

#include "tern/kernels/kernel.h"
#include "tern/kernels/options.h"

namespace tern::kernels {

/// Returns [N, C, H', W']. Throws an error that begins with `operation` and says what does not fit.
Shape pool2d_output_shape(const Shape& x, const PoolGeometry& geometry, const char* operation = "pool2d");

/// The dtype of `where` for such windows: u8, or i64 if they have more than 255 elements.
inline DType place_dtype(const PoolGeometry& geometry) {
  return geometry.window.h * geometry.window.w <= 255 ? DType::u8 : DType::i64;
}
/// Calls `function(P*)` with the elements of `where`.
template <class Function>
void visit_places(const Tensor& where, Function&& function) {
  if (where.dtype() == DType::u8)
    function(where.data<uint8_t>());
  else
    function(where.data<int64_t>());
}

/// `where` [N, C, H', W'], in the format of y: the position of the maximum in its window, counted row by row. If
/// several elements are equal, the first one wins. NaN wins over numbers, and the last NaN wins, as in PyTorch.
inline constinit Kernel<void(const Tensor& x, const PoolGeometry&, Tensor& y, Tensor& where)> max_pool2d{"max_pool2d"};
inline constinit Kernel<void(const Tensor& dy, const Tensor& where, const PoolGeometry&, Tensor& dx)>
    max_pool2d_backward{"max_pool2d_backward"};
inline constinit Kernel<void(const Tensor& x, const PoolGeometry&, Tensor& y)> average_pool2d{"average_pool2d"};
inline constinit Kernel<void(const Tensor& dy, const PoolGeometry&, Tensor& dx)> average_pool2d_backward{
    "average_pool2d_backward"};

}  // namespace tern::kernels
