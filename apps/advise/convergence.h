#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tern/apps/advise/forecast.h"

namespace tern::advise {

inline constexpr double kTarget = 0.98;  ///< of the last accuracy of floats
inline constexpr double kLosable = 0.3;  ///< points of accuracy that a way may lose to floats

/// How a way to train converges, beside float gradients in every step.
struct Convergence {
  double steps = 1;  ///< to `kTarget`, divided by the steps that floats need; infinite: the run did not reach it
  double lost = 0;   ///< points of accuracy at the end; below 0 if it is better

  bool keeps_accuracy() const { return lost <= kLosable; }
};

/// What `reproduce grid` trained `network` on, with 4 workers: "LeNet on MNIST". Empty if it has no runs of it.
std::string measured_task(std::string_view network);

/// What `reproduce grid` measured for `network` (docs/distributed.md, "Methods for slow networks"). nullopt if the grid
/// has no such run: methods with local steps have one number of them, 10 with LeNet and 20 with airbench.
std::optional<Convergence> measured_convergence(std::string_view network, const Way& way, int64_t local_steps);

}  // namespace tern::advise
