#pragma once

#include <cuda_runtime.h>

#include "tern/core/caching_backend.h"
#include "tern/core/device.h"

namespace tern::cuda {

/// Throws an Error "operation: what CUDA says" unless the call succeeded.
void check_cuda(cudaError_t status, const char* operation);

/// Makes `device` the calling thread's and returns the stream on which all that tern does there runs in order.
cudaStream_t enter(Device device);

/// Whether TERN_CUDA_SYNC=1 asks to wait after every operation, so that an error is raised by the one that caused it.
bool waits_after_each();

/// A cudaEvent without timing: a place in a stream.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(cudaStream_t stream);
  /// Work put into `stream` from now on waits for the recorded place.
  void hold(cudaStream_t stream) const;
  void synchronize() const;

 private:
  cudaEvent_t event_ = nullptr;
};

/// The memory of one CUDA device, as `device_backend` gives it.
CachingBackend& memory(Device device);

/// An InputError that names both sides unless this build holds code that the device runs.
void check_architecture(int device);

}  // namespace tern::cuda
