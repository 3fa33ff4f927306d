#pragma once

#include "tern/autograd/variable.h"
#include "tern/kernels/normalization.h"

namespace tern {

using kernels::BatchNormOptions;
using kernels::LocalResponseNormOptions;

/// What a batch normalisation learns and remembers, each [C].
struct BatchNormState {
  Variable gamma, beta;
  Tensor running_mean, running_variance;
};

/// Ioffe and Szegedy, 2015, over every dimension of x [N, C] or [N, C, H, W] but C, plus `residual` (of x's shape)
/// where defined, then max(·, 0) with `options.relu`. Training uses the batch's statistics and updates the running
/// ones; inference uses the running ones.
Variable batch_norm(const Variable& x, const BatchNormState& state, const BatchNormOptions& options, bool training,
                    const Variable& residual = {});

/// Across channels (Krizhevsky et al., 2012), x [N, C, H, W].
Variable local_response_norm(const Variable& x, const LocalResponseNormOptions& options = {});

}  // namespace tern
