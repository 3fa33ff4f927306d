#pragma once

#include "tern/optim/optimizer.h"

namespace tern {

/// Adam (Kingma and Ba, 2015), or AdamW with `decoupled` (Loshchilov and Hutter, 2019), as in torch.optim. State:
/// "first.<parameter>" and "second.<parameter>" (the moments), "step.<parameter>" (its own count of steps).
class Adam final : public Optimizer {
 public:
  struct Options {
    double lr = 1e-3;
    double beta1 = 0.9, beta2 = 0.999;  ///< decay rates of the moments, in [0, 1)
    double epsilon = 1e-8;
    double weight_decay = 0;
    bool decoupled = false;  ///< if set, weight decay shrinks w directly; otherwise it is added to the gradient
  };

  Adam(std::vector<NamedParameter> parameters, const Options& options);
  Adam(const std::vector<ParameterGroup>& groups, const Options& options);

  /// The rule alone, for groups of another optimizer, which gives it the learning rate and the weight decay. Throws
  /// InputError if one of the two differs from its default.
  static std::shared_ptr<const StepRule> rule(const Options& options);
};

}  // namespace tern
