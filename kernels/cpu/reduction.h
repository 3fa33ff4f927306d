#pragma once

#include "tern/core/tensor.h"

namespace tern::cpu {

void sum(const Tensor& x, double scale, Tensor& y);
void broadcast_to(const Tensor& x, double scale, Tensor& y);

}  // namespace tern::cpu
