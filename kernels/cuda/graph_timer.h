#pragma once

#include <functional>

#include "tern/core/cuda/runtime.h"

namespace tern::cuda {

/// Measures the time that a device takes for some work, without the time that the host takes to issue it. The work is
/// recorded as a CUDA graph. Owns the graph; the memory that the work uses must live as long. Used by one thread.
class GraphTimer {
 public:
  /// Records what `issue(stream)` issues, several times in a row, and runs none of it. `stream` is one of its own: work
  /// that other threads issue meanwhile is not recorded. Throws Error if `issue` throws it, or if the work cannot be
  /// recorded.
  GraphTimer(Device device, const std::function<void(cudaStream_t)>& issue);
  ~GraphTimer();
  GraphTimer(const GraphTimer&) = delete;
  GraphTimer& operator=(const GraphTimer&) = delete;

  /// Runs the work in the device's stream and waits for it. Milliseconds of the device for all of it. The device gets
  /// the work while a kernel keeps it busy, so it never waits for a launch.
  float milliseconds();

 private:
  void record(cudaStream_t stream, const std::function<void(cudaStream_t)>& issue);

  Device device_;
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace tern::cuda
