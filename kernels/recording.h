#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "tern/core/device.h"

namespace tern {

/// Work of a device that was recorded once and runs again as a whole, on the same memory: a CUDA graph. Used by one
/// thread.
class Recording {
 public:
  virtual ~Recording() = default;
  /// Issues all of it behind what was issued before. Where it draws random numbers, they are those of training step
  /// `step`.
  virtual void replay(uint32_t step) = 0;
  /// Kernels, copies and fills that a replay issues, besides one copy of the step where it draws random numbers.
  virtual size_t launches() const = 0;
};

/// Records what this thread issues on `device` in `work`, instead of running it. `work` neither waits for the device
/// nor reads from it, has been run before, so that whatever is made on first use is there, and keeps what it wants to
/// find after a replay. An error where the device, or something in `work`, cannot be recorded; then nothing has been
/// run.
std::unique_ptr<Recording> record(Device device, const std::function<void()>& work);

}  // namespace tern

namespace tern::cuda {

/// Where on the device a kernel that is being recorded finds the number of the training step it will run in; null where
/// this thread records nothing: then the step it is given holds.
const int64_t* recorded_step();

}  // namespace tern::cuda
