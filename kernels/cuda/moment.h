#pragma once

#include "tern/core/cuda/runtime.h"

namespace tern::cuda {

/// The time at which a device reached a position in a stream: a cudaEvent with timing.
class Moment {
 public:
  Moment() { check_cuda(cudaEventCreate(&event_), "event"); }
  ~Moment() { cudaEventDestroy(event_); }
  Moment(const Moment&) = delete;
  Moment& operator=(const Moment&) = delete;

  void record(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "event"); }
  /// Waits for this moment. `earlier` must be recorded before it in the same stream.
  float milliseconds_since(const Moment& earlier) const {
    check_cuda(cudaEventSynchronize(event_), "event");
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, earlier.event_, event_), "event");
    return milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace tern::cuda
