#pragma once

#include <optional>

#include "tern/apps/advise/forecast.h"

namespace tern::advise {

inline constexpr double kTarget = 0.98;  ///< of the last accuracy of floats
inline constexpr double kLosable = 0.3;  ///< points of accuracy that a way may lose to floats

/// How a way to train converges, beside float gradients in every step.
struct Convergence {
  double steps = 1;  ///< to `kTarget`, divided by the steps that floats need
  double lost = 0;   ///< points of accuracy at the end; below 0 if it is better

  bool keeps_accuracy() const { return lost <= kLosable; }
};

/// What `reproduce grid` measured for LeNet on MNIST with 4 workers, 10 local steps and five seeds
/// (docs/distributed.md, "Methods for slow networks"). nullopt if the grid has no such run: methods with local steps
/// have one for 10 of them.
std::optional<Convergence> measured_convergence(const Way& way, int64_t local_steps);

}  // namespace tern::advise
