#pragma once

#include "tern/core/caching_backend.h"

namespace tern::cuda {

/// The memory of one CUDA device, as `device_backend` gives it.
CachingBackend& memory(Device device);

}  // namespace tern::cuda
