#pragma once

#include <utility>

#include "tern/autograd/functional.h"
#include "tern/layers/initialize.h"
#include "tern/layers/module.h"

namespace tern {

/// Takes x [..., in] and gives x · weightᵀ + bias [..., out], as torch.nn.Linear does. If `relu` is set, applies max(·,
/// 0) to the result.
class Linear final : public Layer, public InputParallel {
 public:
  struct Options {
    int64_t in = 1, out = 1;
    bool bias = true;
    bool relu = false;
    Initializer weight_initializer = default_weight();
    Initializer bias_initializer = {};  ///< if empty, `default_bias` is used
  };
  explicit Linear(const Options& options);
  Variable forward(const Variable& x) override;
  /// For evaluation: the result has no gradient.
  void add_over_ranks(SumOverRanks sum) override { sum_ = std::move(sum); }

  Parameter& weight;
  Parameter* const bias;  ///< null if there is none

 private:
  SumOverRanks sum_;
  bool relu_;
};

/// Reshapes [N, C, H, W] to [N, C·H·W]. The order of the elements is C, H, W in every memory format.
class Flatten final : public Layer {
 public:
  struct Options {};
  explicit Flatten(const Options& = {}) {}
  Variable forward(const Variable& x) override { return flatten(x); }
};

}  // namespace tern
