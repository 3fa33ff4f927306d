#pragma once

#include "tern/core/tensor.h"

namespace tern::cuda {

/// y = y + bias[C] of each channel (undefined: 0), then max(·, 0) if `relu`, NaN staying NaN.
void add_bias(const char* operation, const Tensor& bias, bool relu, Tensor& y);

}  // namespace tern::cuda
