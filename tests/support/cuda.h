#pragma once

#include <string>

#include "tern/core/device.h"
#include "tern/core/error.h"

namespace tern::test {

/// Why no CUDA device can be used here, for tests to skip with; empty where one can.
inline std::string why_no_cuda() {
  try {
    device_backend({DeviceType::cuda, 0});
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace tern::test
