#pragma once

#include "tern/core/device.h"

namespace tern {

/// The CPU's caching allocator: freed blocks wait in lists by size class, so that a training step in
/// steady state takes nothing from the system. Thread-safe; lives for the whole program.
DeviceBackend& cpu_memory();

}  // namespace tern
