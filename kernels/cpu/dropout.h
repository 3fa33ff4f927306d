#pragma once

#include "tern/kernels/dropout.h"

namespace tern::cpu {

void dropout(const Tensor& x, const Tensor& samples, const kernels::DropoutDraw& draw, Tensor& y);

}  // namespace tern::cpu
