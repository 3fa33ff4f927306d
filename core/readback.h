#pragma once

#include <memory>

#include "tern/core/tensor.h"

namespace tern {

/// One tensor after another on its way from a CUDA device to the CPU, without waiting for the device. Used by one
/// thread.
class Readback {
 public:
  virtual ~Readback() = default;
  /// Begins to copy `source` as the work issued so far leaves it; what is issued later may overwrite it.
  virtual void start(const Tensor& source) = 0;
  /// What was begun last, on the CPU; waits for it.
  virtual Tensor wait() = 0;
};

std::unique_ptr<Readback> make_readback(Device device);

}  // namespace tern
