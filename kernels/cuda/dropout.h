#pragma once

#include "tern/kernels/dropout.h"

namespace tern::cuda {

void dropout(const Tensor& x, const Tensor& samples, const kernels::DropoutDraw& draw, Tensor& y);

}  // namespace tern::cuda
