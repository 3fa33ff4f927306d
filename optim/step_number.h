#pragma once

#include "tern/core/tensor.h"

namespace tern {

/// A number of an update that changes from step to step, where the kernels read it. Used by one thread.
class StepNumber {
 public:
  /// In the order of the device's work.
  void set(double value, Device device);
  /// [], f64; the same memory as long as the device is the same.
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
  double value_ = 0;  // that it holds
};

}  // namespace tern
