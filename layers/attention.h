#pragma once

#include "tern/autograd/functional.h"
#include "tern/layers/linear.h"
#include "tern/layers/module.h"

namespace tern {

/// Self-attention with several heads over sequences x [N, T, features], as torch.nn.MultiheadAttention with
/// batch_first=True, called as attention(x, x, x). Parameters have its names and first values.
class MultiHeadAttention final : public Layer {
 public:
  struct Options {
    int64_t features = 1, heads = 1;  ///< features are shared equally by the heads
    bool bias = true;
    bool causal = false;  ///< step t sees steps 0 to t only
  };
  explicit MultiHeadAttention(const Options& options);
  Variable forward(const Variable& x) override;

 private:
  int64_t heads_;
  bool causal_;
  Parameter& in_weight_;
  Parameter* const in_bias_;
  Linear& out_;
};

}  // namespace tern
