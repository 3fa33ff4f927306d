#pragma once

#include <functional>

#include "tern/core/cuda/runtime.h"

namespace tern::cuda {

/// Which of `count` candidates the device runs fastest, the first of equals; `run(i)` issues candidate i into `stream`.
/// Each runs thirteen times.
size_t fastest_of(size_t count, cudaStream_t stream, const std::function<void(size_t)>& run);

}  // namespace tern::cuda
