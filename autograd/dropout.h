#pragma once

#include "tern/autograd/variable.h"
#include "tern/kernels/dropout.h"

namespace tern {

using kernels::DropoutDraw;

/// x / (1 - p) where kept, else 0 (Srivastava et al., 2014). Which elements drop follows from `draw` and the global
/// index of each row's sample, `samples` i64 [N], alone.
Variable dropout(const Variable& x, const Tensor& samples, const DropoutDraw& draw);

}  // namespace tern
