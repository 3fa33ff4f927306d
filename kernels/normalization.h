#pragma once

#include "tern/kernels/kernel.h"

namespace tern::kernels {

/// Tensors of a batch normalisation, each [C], of `parameter_dtype` of x.
struct BatchNormParameters {
  Tensor gamma, beta;
  Tensor running_mean, running_variance;
};

struct BatchNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;  ///< running = (1 - momentum)·running + momentum·batch (variance unbiased), as in PyTorch
  bool relu = false;      ///< max(·, 0) last
};

/// N·H·W of x [N, C] or [N, C, H, W]; an error unless it is 2 or more, as training needs.
int64_t batch_norm_count(const Shape& x);

/// Ioffe and Szegedy, 2015, over every dimension of x [N, C] or [N, C, H, W] but C. `residual`, where defined,
/// is added before the relu. Writes the batch's `mean` and `inverse_deviation` 1/sqrt(variance + epsilon), [C], and
/// updates the running statistics. x, residual and y share shape, dtype and format.
inline constinit Kernel<void(const Tensor& x, const Tensor& residual, const BatchNormParameters&,
                             const BatchNormOptions&, Tensor& y, Tensor& mean, Tensor& inverse_deviation)>
    batch_norm_training{"batch_norm_training"};
/// The same with the running statistics, which stay as they are.
inline constinit Kernel<void(const Tensor& x, const Tensor& residual, const BatchNormParameters&,
                             const BatchNormOptions&, Tensor& y)>
    batch_norm_inference{"batch_norm_inference"};

/// What the backward of `batch_norm_training` reads. y only with relu.
struct BatchNormSaved {
  Tensor x, y, gamma, mean, inverse_deviation;
};
/// dx, dgamma, dbeta, and dresidual where defined (dy through the relu).
inline constinit Kernel<void(const Tensor& dy, const BatchNormSaved&, bool relu, Tensor& dx, Tensor& dgamma,
                             Tensor& dbeta, Tensor& dresidual)>
    batch_norm_backward{"batch_norm_backward"};

/// Across channels (Krizhevsky et al., 2012) with PyTorch's parameters: y = x / (k + alpha/size · Σ x²)^beta over
/// `size` channels around each.
struct LocalResponseNormOptions {
  int64_t size = 5;
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1.0;
};
/// `denominator`, as x: k + alpha/size · Σ x².
inline constinit Kernel<void(const Tensor& x, const LocalResponseNormOptions&, Tensor& y, Tensor& denominator)>
    local_response_norm{"local_response_norm"};
inline constinit Kernel<void(const Tensor& dy, const Tensor& x, const Tensor& denominator,
                             const LocalResponseNormOptions&, Tensor& dx)>
    local_response_norm_backward{"local_response_norm_backward"};

}  // namespace tern::kernels
