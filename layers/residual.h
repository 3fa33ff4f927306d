#pragma once

#include "tern/layers/sequential.h"

namespace tern {

/// body(x) + shortcut(x), then max(·, 0) with `relu` (He et al., 2016). An empty shortcut is the identity.
class Residual final : public Module {
 public:
  struct Options {
    bool relu = true;
  };
  explicit Residual(const Options& options) : relu_(options.relu) {}
  Variable forward(const Variable& x) override;

  Sequential& body = add<Sequential>("body");
  Sequential& shortcut = add<Sequential>("shortcut");

 private:
  bool relu_;
};

}  // namespace tern
