#pragma once

#include "tern/layers/module.h"

namespace tern {

/// While one lives, a module and all below are in evaluation mode; then they go back to what the module was in.
class EvaluationMode {
 public:
  explicit EvaluationMode(Module& model) : model_(model), was_training_(model.training()) { model.set_training(false); }
  ~EvaluationMode() { model_.set_training(was_training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  Module& model_;
  bool was_training_;
};

}  // namespace tern
