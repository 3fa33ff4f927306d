#pragma once

#include "tern/layers/module.h"

namespace tern {

/// In training, sets elements of x [N, ...] to 0 with a probability and scales up the rest. In evaluation, returns x.
/// Row n is sample n, so transpose sequences whose time comes first, such as Lstm's. The draws depend only on the seed,
/// the step, the sample and the number of this layer, which `begin_step` gives, and on how many calls in training came
/// before in the step. So a model may call one Dropout, or be called, several times a step.
class Dropout final : public Layer {
 public:
  struct Options {
    double probability = 0.5;
  };
  explicit Dropout(const Options& options) : probability_(options.probability) {}
  Variable forward(const Variable& x) override;

 private:
  void on_step(const StepContext& context, uint32_t number) override;

  double probability_;
  StepContext context_;
  uint32_t number_ = 0;
  uint32_t calls_ = 0;  ///< in training since `begin_step`
};

}  // namespace tern
