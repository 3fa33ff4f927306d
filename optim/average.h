#pragma once

#include <vector>

#include "tern/autograd/parameter.h"
#include "tern/core/state_dict.h"
#include "tern/optim/optimizer.h"

namespace tern {

/// An exponential moving average of parameters, for evaluation: a ← d·a + (1 - d)·w after each step, with
/// d = min(decay, (1 + t)/(10 + t)) for the t-th update from 0, so that the first values are soon forgotten. Begins
/// with the parameters' values at construction. Does not own the parameters; used by one thread at a time.
class ParameterAverage {
 public:
  /// `decay` in [0, 1), e.g. 0.9999.
  ParameterAverage(std::vector<NamedParameter> parameters, double decay);

  /// After each optimizer step: `begin_update`, then `issue_update`, of which the latter can be recorded like
  /// Optimizer::issue_step.
  void update();
  void begin_update();
  void issue_update();
  /// Exchanges parameters and averages: averages in before evaluation, out again after it. Drops the gradients.
  void swap();

  /// "average.<parameter>" and "updates", sharing storage with this; not between the two swaps.
  StateDict state();
  /// As Optimizer::load_state.
  void load_state(const StateDict& state);

 private:
  std::vector<NamedParameter> parameters_;
  std::vector<Tensor> averages_;
  double decay_;
  Tensor updates_;  // t, i64 [], on the CPU
  StepNumber step_decay_;
  bool swapped_ = false;
};

}  // namespace tern
