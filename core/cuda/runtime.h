#pragma once

#include <cuda_runtime.h>

#include "tern/core/caching_backend.h"
#include "tern/core/device.h"

namespace tern::cuda {

/// Throws if `status` is an error: InputError if the GPU is out of memory, otherwise Error "operation: CUDA: message".
void check_cuda(cudaError_t status, const char* operation);

/// Makes `device` the calling thread's current device. Returns the stream in which tern's kernels on that device run in
/// order; in Upload::run, the stream of the Upload.
cudaStream_t enter(Device device);

/// Whether TERN_CUDA_SYNC=1 is set. Each operation then waits for its work, so that the operation that caused an error
/// reports it.
bool waits_after_each();

/// A cudaEvent without timing: marks a position in a stream.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(cudaStream_t stream);
  /// Work that is put into `stream` from now on waits for the recorded position.
  void hold(cudaStream_t stream) const;
  /// Whether the device has passed the recorded position.
  bool passed() const;
  void synchronize() const;

 private:
  cudaEvent_t event_ = nullptr;
};

/// The memory of one CUDA device, the same object that `device_backend` returns.
CachingBackend& memory(Device device);

/// Throws InputError if this build holds no code for the device's architecture. The message names both architectures.
void check_architecture(int device);

}  // namespace tern::cuda
