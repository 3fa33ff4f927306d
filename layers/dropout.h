#pragma once

#include "tern/layers/module.h"

namespace tern {

/// In training, sets elements to 0 with a probability and scales up the rest. In evaluation, returns x. The draws
/// depend only on the seed, the step, the sample and the number of this layer; `begin_step` gives them.
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
