#pragma once

#include "tern/layers/module.h"

namespace tern {

/// Drops elements with a probability in training and scales up the rest; passes x through in evaluation. Draws follow
/// from the seed, the step, this layer's number and the sample alone, as `begin_step` gives them.
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
};

}  // namespace tern
