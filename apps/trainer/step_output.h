#pragma once

#include <array>
#include <functional>
#include <memory>

#include "tern/core/readback.h"

namespace tern {

/// What a training step gives.
struct StepOutput {
  Tensor loss, logits;
};

/// The outputs of steps on their way to the CPU, without waiting for the device. Used by one thread.
class StepOutputs {
 public:
  /// Waits for an output; holds until the step after the next is brought.
  using Arrival = std::function<StepOutput()>;

  explicit StepOutputs(Device device);
  Arrival bring(const StepOutput& output);

 private:
  struct Readbacks {
    std::unique_ptr<Readback> loss, logits;  ///< null on the CPU
  };
  std::array<Readbacks, 2> readbacks_;
  size_t turn_ = 0;
};

}  // namespace tern
