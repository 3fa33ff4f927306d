#pragma once

#include <functional>

#include "tern/core/cuda/runtime.h"

namespace tern::cuda {

/// Measures the time that a device takes for some work, without the time that the host takes to issue it. The work is
/// recorded as a CUDA graph. Owns the graph; the memory that the work uses must live as long. Used by one thread.
class Stopwatch {
 public:
  /// Records what `run` issues into the stream of `device`, several times in a row, and runs none of it. Throws Error
  /// if `run` throws it, or if the work cannot be recorded.
  Stopwatch(Device device, const std::function<void()>& run);
  ~Stopwatch();
  Stopwatch(Stopwatch&& other) noexcept;
  Stopwatch& operator=(Stopwatch&&) = delete;

  /// Runs the work and waits for it. Milliseconds of the device for all of it. The device gets the work while a kernel
  /// keeps it busy, so it never waits for a launch.
  float milliseconds();

 private:
  Device device_;
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace tern::cuda
