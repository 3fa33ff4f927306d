#pragma once

#include <memory>

#include "tern/core/tensor.h"

namespace tern {

/// Copies tensors from a CUDA device to the CPU, one at a time, beside the device's kernels. Used by one thread.
class Readback {
 public:
  virtual ~Readback() = default;
  /// Begins to copy `source`, and does not wait for the device. The copy sees the results of all work issued before
  /// this call. Nobody may overwrite `source` until `wait` has returned.
  virtual void start(const Tensor& source) = 0;
  /// Waits for the copy that began last and returns its tensor, on the CPU. Throws if there was no `start`.
  virtual Tensor wait() = 0;
};

std::unique_ptr<Readback> make_readback(Device device);

}  // namespace tern
