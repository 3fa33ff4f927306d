#pragma once

#include "tern/kernels/kernel.h"
#include "tern/kernels/options.h"

namespace tern::kernels {

/// Returns [N, O, H', W'] for x [N, C, H, W] and w [O, C/groups, kh, kw]. Throws an error that says what does not fit.
/// N may be 0; the other extents of the result are at least 1.
Shape conv2d_output_shape(const Shape& x, const Shape& w, const ConvGeometry& geometry);
/// Throws an error that begins with `operation` unless strides and dilations are from 1 to 2^31, paddings from 0 to
/// 2^31, and the groups divide the first extent of w [O, C/groups, kh, kw].
void check_conv_geometry(const char* operation, const Shape& w, const ConvGeometry& geometry);

/// y = conv(x, w) + bias, then max(·, 0) if `relu`. x and y share format and dtype (f32, f64 or bf16). w is in the
/// order O, I, H, W, row-major. w and bias [O] have `parameter_dtype`; bias may be undefined. CUDA also takes w in the
/// dtype and format of x, and copies w to them if it has others. On CUDA, x may have more channels than w takes,
/// without groups: spare ones, which are 0.
inline constinit Kernel<void(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvGeometry&, bool relu,
                             Tensor& y)>
    conv2d{"conv2d"};
inline constinit Kernel<void(const Tensor& dy, const Tensor& w, const ConvGeometry&, Tensor& dx)> conv2d_backward_data{
    "conv2d_backward_data"};
/// dx += what conv2d_backward_data gives.
inline constinit Kernel<void(const Tensor& dy, const Tensor& w, const ConvGeometry&, Tensor& dx)>
    conv2d_backward_data_add{"conv2d_backward_data_add"};
/// dw has the layout of w; on CUDA it may instead have x's dtype, format and channels. db [O] = sums of dy over N, H',
/// W'; db may be undefined.
inline constinit Kernel<void(const Tensor& dy, const Tensor& x, const ConvGeometry&, Tensor& dw, Tensor& db)>
    conv2d_backward_weights{"conv2d_backward_weights"};

}  // namespace tern::kernels
