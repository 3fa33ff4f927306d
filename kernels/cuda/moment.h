#pragma once

#include "tern/core/cuda/runtime.h"

namespace tern::cuda {

/// When a device reached a place in a stream: a cudaEvent with timing.
class Moment {
 public:
  Moment() { check_cuda(cudaEventCreate(&event_), "event"); }
  ~Moment() { cudaEventDestroy(event_); }
  Moment(const Moment&) = delete;
  Moment& operator=(const Moment&) = delete;

  void record(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "event"); }
  /// Waits for this one, recorded after `earlier` in its stream.
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
