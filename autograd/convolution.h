#pragma once

#include "tern/autograd/matmul.h"
#include "tern/autograd/variable.h"
#include "tern/kernels/convolution.h"

namespace tern {

using kernels::ConvGeometry;
using kernels::Extent2;

/// The cross-correlation of x [N, C, H, W] with w [O, C/groups, kh, kw], plus bias [O], which may be undefined:
/// [N, O, H', W'] in x's format and dtype.
Variable conv2d(const Variable& x, const Variable& w, const Variable& bias, const ConvGeometry& geometry = {},
                const Fused& fused = {});

}  // namespace tern
