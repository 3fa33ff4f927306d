#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tern/core/device.h"

namespace tern {

/// Words with which kernels of a device tell the CPU something, without a copy and without a wait. They are zero at
/// first. Used by one thread of the CPU.
class Notices {
 public:
  Notices(Device device, size_t count) : memory_(device_backend(device).host_memory(count * sizeof(uint32_t))) {
    std::fill_n(at(0), count, 0u);
  }

  /// Where kernels write word i.
  uint32_t* at(size_t i) const { return static_cast<uint32_t*>(memory_.get()) + i; }
  /// Word i as the CPU sees it now. It sees the writes of all kernels that were issued before something that it has
  /// read from the device.
  uint32_t read(size_t i) const { return *static_cast<const volatile uint32_t*>(at(i)); }

 private:
  std::shared_ptr<void> memory_;  // kernels reach it at the address that the CPU uses
};

}  // namespace tern
