#pragma once

#include <functional>
#include <optional>

#include "tern/kernels/cuda/captured_graph.h"

namespace tern::cuda {

/// Measures the time that a device takes for some work, without the time that the host takes to issue it. The memory
/// that the work uses must live as long. Used by one thread.
class GraphTimer {
 public:
  /// Captures what `issue(stream)` issues, several times in a row. `stream` is one of its own: work that other threads
  /// issue meanwhile is not captured. Calls `leave`, which must not throw, before it destroys the stream, also after an
  /// error. Throws as CapturedGraph does.
  GraphTimer(Device device, const std::function<void(cudaStream_t)>& issue, const std::function<void()>& leave);

  /// Runs the work in the device's stream and waits for it. Milliseconds of the device for all of it. The device gets
  /// the work while a kernel keeps it busy, so it never waits for a launch.
  float milliseconds();

 private:
  Device device_;
  std::optional<CapturedGraph> graph_;
};

}  // namespace tern::cuda
