#pragma once

#include "tern/kernels/operation_clock.h"

namespace tern {

/// An error in a build without CUDA.
std::unique_ptr<OperationClock> make_cuda_operation_clock(Device device);

}  // namespace tern
