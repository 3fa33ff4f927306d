#pragma once

#include "tern/autograd/functional.h"
#include "tern/layers/initialize.h"
#include "tern/layers/module.h"

namespace tern {

/// x · weightᵀ + bias for x [N, in], as torch.nn.Linear. Gives [N, out]. Then max(·, 0) with `relu`.
class Linear final : public Layer {
 public:
  struct Options {
    int64_t in = 1, out = 1;
    bool bias = true;
    bool relu = false;
    Initializer weight_initializer = default_weight();
    Initializer bias_initializer = {};  ///< empty: `default_bias`
  };
  explicit Linear(const Options& options);
  Variable forward(const Variable& x) override;

  Parameter& weight;
  Parameter* const bias;  ///< null if there is none

 private:
  bool relu_;
};

/// [N, C·H·W] from [N, C, H, W], in the order C, H, W in every format.
class Flatten final : public Layer {
 public:
  struct Options {};
  explicit Flatten(const Options& = {}) {}
  Variable forward(const Variable& x) override { return flatten(x); }
};

}  // namespace tern
