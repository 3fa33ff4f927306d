#pragma once

#include <string>

#include "tern/core/device.h"
#include "tern/core/error.h"

namespace tern::test {

/// Returns why so many CUDA devices cannot be used here, for GTEST_SKIP; an empty string if they can.
inline std::string why_no_cuda(int devices = 1) {
  try {
    device_backend({DeviceType::cuda, devices - 1});
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace tern::test
