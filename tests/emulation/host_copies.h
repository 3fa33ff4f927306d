#pragma once

#include <cstdint>

namespace emulation {

/// The bytes that all copies so far have brought to devices, and back to the host.
struct HostCopies {
  uint64_t to_device, to_host;
};
HostCopies host_copies();

}  // namespace emulation
