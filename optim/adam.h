#pragma once

#include "tern/optim/optimizer.h"

namespace tern {

/// Adam (Kingma and Ba, 2015), or with `decoupled` AdamW (Loshchilov and Hutter, 2019), as torch.optim has them.
/// State: "first.<parameter>", "second.<parameter>" (moments), "step.<parameter>" (its own count of steps).
class Adam final : public Optimizer {
 public:
  struct Options {
    double lr = 1e-3;
    double beta1 = 0.9, beta2 = 0.999;  ///< decay of the moments, in [0, 1)
    double epsilon = 1e-8;
    double weight_decay = 0;
    bool decoupled = false;  ///< the decay shrinks w by itself instead of entering the gradient
  };

  Adam(std::vector<NamedParameter> parameters, const Options& options);
  Adam(std::vector<ParameterGroup> groups, const Options& options);

 private:
  void update(std::span<const kernels::ParameterUpdate> updates, const GroupSettings& settings) override;

  Options options_;
};

}  // namespace tern
