#pragma once

#include "tern/core/tensor.h"

namespace tern::reference {

void relu(const Tensor& x, Tensor& y);

}  // namespace tern::reference
