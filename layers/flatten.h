#pragma once

#include "tern/autograd/layout.h"
#include "tern/layers/module.h"

namespace tern {

/// [N, C·H·W] from [N, C, H, W], in the order C, H, W whatever the format.
class Flatten final : public Module {
 public:
  struct Options {};
  explicit Flatten(const Options& = {}) {}
  Variable forward(const Variable& x) override { return flatten(x); }
};

}  // namespace tern
