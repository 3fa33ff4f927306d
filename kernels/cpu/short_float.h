#pragma once

#include "tern/kernels/short_float.h"

namespace tern::cpu {

void shorten(const Tensor& x, kernels::ShortFloat format, Tensor& codes);
void widen_add(const Tensor& messages, int64_t codes_at, kernels::ShortFloat format, Tensor& sum);

}  // namespace tern::cpu
