#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "tern/core/device.h"

namespace tern {

/// Work of a device that was recorded once and can run again as a whole, on the same memory: a CUDA graph. Used by one
/// thread.
class Recording {
 public:
  virtual ~Recording() = default;
  /// Issues all the recorded work, after all work that was issued before. If the work depends on the step, such as
  /// random numbers and notices, it is that of training step `step`. Does not change the versions of the tensors that
  /// it writes (Tensor::version). If the work has operations of a communicator, all ranks replay it together, with
  /// growing steps; throws PeerError if the communicator has failed.
  virtual void replay(uint32_t step) = 0;
  /// The number of kernels, copies and fills that a replay issues. If the work depends on the step, a replay also
  /// issues one copy of the step, which is not counted.
  virtual size_t launches() const = 0;
};

/// Records what this thread issues on `device` in `work`, instead of running it. `work` must not wait for the device or
/// read from it. It must have run before, so that everything that is made on first use exists. It must keep the results
/// that it needs after a replay. If `earlier` is given, the work uses the memory of that recording too: each replay of
/// one overwrites what the other computed, except the results that `earlier` keeps. Throws if the device, or something
/// in `work`, cannot be recorded; then nothing has run.
std::unique_ptr<Recording> record(Device device, const std::function<void()>& work, const Recording* earlier = nullptr);

/// Whether this thread is in `work` of `record`.
bool is_recording();

}  // namespace tern
