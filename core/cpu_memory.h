#pragma once

#include "tern/core/device.h"

namespace tern {

/// The CPU's caching allocator. Thread-safe; lives for the whole program.
DeviceBackend& cpu_memory();

}  // namespace tern
