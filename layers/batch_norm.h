#pragma once

#include "tern/autograd/normalization.h"
#include "tern/layers/module.h"

namespace tern {

/// Batch normalisation of x [N, C] or [N, C, H, W], as torch.nn.BatchNorm1d and 2d: the batch's statistics in
/// training, the running ones in evaluation; then max(·, 0) with `relu`.
class BatchNorm : public Module {
 public:
  struct Options {
    int64_t features = 1;
    double epsilon = 1e-5;
    double momentum = 0.1;  ///< share of the newest batch in the running statistics
    bool relu = false;
  };
  explicit BatchNorm(const Options& options);

  using Module::operator();
  /// The same plus `residual`, of x's shape, before the relu.
  Variable operator()(const Variable& x, const Variable& residual) {
    return run([&] { return forward(x, residual); });
  }
  Variable forward(const Variable& x) override { return forward(x, {}); }
  Variable forward(const Variable& x, const Variable& residual);

  double momentum() const { return options_.momentum; }
  /// In [0, 1]; 0: a batch leaves the running statistics as they are.
  void set_momentum(double momentum);

  Parameter& weight;
  Parameter& bias;
  Tensor& running_mean;
  Tensor& running_var;
  Tensor& num_batches_tracked;

 private:
  BatchNormOptions options_;
};

using BatchNorm1d = BatchNorm;
using BatchNorm2d = BatchNorm;

}  // namespace tern
