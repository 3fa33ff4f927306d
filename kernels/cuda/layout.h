#pragma once

#include "tern/kernels/layout.h"

namespace tern::cuda {

void convert(const Tensor& x, Tensor& y);
void transpose(const Tensor& x, int first, int second, Tensor& y);
void extract(const Tensor& x, const kernels::Offsets& offsets, Tensor& y);
void insert(const Tensor& x, const kernels::Offsets& offsets, Tensor& y);
void fill(Tensor& x, double value);

}  // namespace tern::cuda
