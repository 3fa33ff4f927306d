#pragma once

#include "tern/core/device.h"

namespace tern::kernels {

/// What a CUDA device's libraries may do with products and convolutions.
struct LibraryRules {
  bool tf32 = false;           ///< f32 factors are read with 10 bits of fraction, on tensor cores; sums stay f32
  bool deterministic = false;  ///< the same bits from run to run, by engines that no timing chooses
};

/// For all that runs on `device` from now on; a setting of the whole process. Thread-safe.
void set_library_rules(Device device, const LibraryRules& rules);
LibraryRules library_rules(Device device);

}  // namespace tern::kernels
