#pragma once

#include "tern/core/cuda/recorded_step.h"

namespace tern::cuda {

/// The step of a kernel's work: `recorded` is what `recorded_step()` returned at its launch, and `given` is the step
/// that the launch belonged to.
__device__ inline uint32_t step_now(const int64_t* recorded, uint32_t given) {
  return recorded != nullptr ? static_cast<uint32_t>(*recorded) : given;
}

}  // namespace tern::cuda
