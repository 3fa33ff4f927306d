#pragma once

#include "tern/core/random.h"
#include "tern/kernels/kernel.h"
#include "tern/kernels/options.h"

namespace tern::kernels {

/// y = x / (1 - p) for kept elements, 0 for dropped ones. The backward is the same operation on dy. Element e of row n
/// is dropped if RandomStream({seed, dropout, samples[n], step, layer}).uniform(e) < p. e counts in logical row-major
/// order within the sample, in every format. samples: i64 [N].
inline constinit Kernel<void(const Tensor& x, const Tensor& samples, const DropoutDraw&, Tensor& y)> dropout{"dropout"};

}  // namespace tern::kernels
