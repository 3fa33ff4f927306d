#pragma once

#include "tern/optim/optimizer.h"

namespace tern {

/// Stochastic gradient descent in the form of torch.optim.SGD, without dampening: v ← μv + g, w ← w - lr·v. With
/// Nesterov momentum: w ← w - lr·(g + μv). Weight decay is added to the gradient. State: "momentum.<parameter>" if μ >
/// 0.
class Sgd final : public Optimizer {
 public:
  struct Options {
    double lr = 0.01;
    double momentum = 0;  ///< μ in [0, 1)
    double weight_decay = 0;
    bool nesterov = false;  ///< Nesterov's form; throws unless momentum > 0
  };

  Sgd(std::vector<NamedParameter> parameters, const Options& options);
  Sgd(const std::vector<ParameterGroup>& groups, const Options& options);

  /// The rule alone, for groups of another optimizer, which gives it the learning rate and the weight decay. Throws
  /// InputError if one of the two differs from its default.
  static std::shared_ptr<const StepRule> rule(const Options& options);
};

}  // namespace tern
