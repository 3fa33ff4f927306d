#pragma once

#include "tern/autograd/normalization.h"
#include "tern/layers/module.h"

namespace tern {

/// Local response normalisation across channels of x [N, C, H, W], as torch.nn.LocalResponseNorm.
class LocalResponseNorm final : public Module {
 public:
  using Options = LocalResponseNormOptions;
  explicit LocalResponseNorm(const Options& options) : options_(options) {}
  Variable forward(const Variable& x) override { return local_response_norm(x, options_); }

 private:
  Options options_;
};

}  // namespace tern
