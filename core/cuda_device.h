#pragma once

#include "tern/core/device.h"

namespace tern {

/// The backend of one CUDA device, made on first use. An InputError says what is missing: CUDA in this build, a driver,
/// the device, or code for its architecture.
DeviceBackend& cuda_device(int index);

/// How many this machine has, 1 or more; an InputError says why there are none.
int cuda_device_count();

}  // namespace tern
