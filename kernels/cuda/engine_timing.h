#pragma once

#include <exception>
#include <functional>

#include "tern/core/cuda/runtime.h"

namespace tern::cuda {

/// Calls `run`, which issues work into `stream`, and waits for the work. Returns the Error that `run` throws, or null:
/// an engine may lack memory for its workspace, or not run on this device. The error is cleared on the device. An error
/// that cannot be cleared, such as an illegal address, is thrown.
std::exception_ptr failure_of(cudaStream_t stream, const std::function<void()>& run);

/// The first of `count` candidates that runs; `run(i)` issues candidate i into `stream`. Where none runs, the last
/// one's error is thrown.
size_t first_of(size_t count, cudaStream_t stream, const std::function<void(size_t)>& run);

/// The candidate that the device runs fastest, the first of equals, of those that run. Each runs up to thirteen times.
size_t fastest_of(size_t count, cudaStream_t stream, const std::function<void(size_t)>& run);

}  // namespace tern::cuda
