#pragma once

#include <vector>

#include "tern/autograd/parameter.h"
#include "tern/core/state_dict.h"
#include "tern/optim/optimizer.h"

namespace tern {

/// An exponential moving average of parameters, for evaluation: a ← a + (1 - d)·(w - a) after each step. For the t-th
/// update, counted from 0, d = min(decay, (1 + t)/(10 + t)), so that the first values have little weight soon. The
/// average starts with the values of the parameters at construction. Does not own the parameters. Used by one thread at
/// a time.
class ParameterAverage {
 public:
  /// `decay` is in [0, 1), for example 0.9999; otherwise throws. Throws if a parameter has no value yet.
  ParameterAverage(std::vector<NamedParameter> parameters, double decay);

  /// Call `update` after each optimizer step. It calls `begin_update`, then `issue_update`. `issue_update` can be
  /// recorded, as Optimizer::issue_step can. All three throw if the averages are swapped in. They and `swap` throw, and
  /// change nothing, if a parameter has another shape or dtype than at construction.
  void update();
  void begin_update();
  void issue_update();
  /// Exchanges parameters and averages. Call it before evaluation, and again after evaluation. Drops the gradients.
  void swap();

  /// The state: "average.<parameter>" and "updates", sharing storage with this object. Throws between the two swaps.
  StateDict state();
  /// As Optimizer::load_state.
  void load_state(const StateDict& state);

 private:
  void check_swapped_out(const char* found) const;
  void check_shapes() const;

  std::vector<NamedParameter> parameters_;
  std::vector<Tensor> averages_;
  double decay_;
  Tensor updates_;  // the number t of updates, i64 [], on the CPU
  StepNumber step_decay_;
  bool swapped_ = false;
};

}  // namespace tern
