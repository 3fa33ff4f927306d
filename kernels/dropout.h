#pragma once

#include "tern/core/random.h"
#include "tern/kernels/kernel.h"

namespace tern::kernels {

/// Which elements drop is a pure function of this and the sample's index; no mask is stored.
struct DropoutDraw {
  uint64_t seed = 0;
  uint32_t step = 0;
  uint32_t layer = 0;
  double probability = 0.5;
};

/// y = x / (1 - p) where kept, else 0; its own backward. Element e (logical row-major order within the sample, whatever
/// the format) of row n drops where RandomStream({seed, dropout, samples[n], step, layer}).uniform(e) < p.
/// samples: i64 [N].
inline constinit Kernel<void(const Tensor& x, const Tensor& samples, const DropoutDraw&, Tensor& y)> dropout{"dropout"};

}  // namespace tern::kernels
