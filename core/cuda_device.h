#pragma once

#include "tern/core/device.h"

namespace tern {

/// The backend of one CUDA device, made on first use. An InputError says what is missing: CUDA in this build, a driver,
/// the device, or code for its architecture.
DeviceBackend& cuda_device(int index);

}  // namespace tern
