#pragma once

#include <string>

#include "tern/core/device.h"
#include "tern/core/error.h"

namespace tern::test {

/// Why no CUDA device, or not so many, can be used here, for tests to skip with; empty where they can.
inline std::string why_no_cuda(int devices = 1) {
  try {
    device_backend({DeviceType::cuda, devices - 1});
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace tern::test
