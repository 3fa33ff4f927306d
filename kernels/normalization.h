#pragma once

#include "tern/kernels/kernel.h"

namespace tern::kernels {

/// Tensors of a batch normalisation. Each is [C], of `parameter_dtype` of x.
struct BatchNormParameters {
  Tensor gamma, beta;
  Tensor running_mean, running_variance;
};

struct BatchNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;  ///< running = (1 - momentum)·running + momentum·batch (variance unbiased), as in PyTorch
  bool relu = false;      ///< applies max(·, 0) last
};

/// Returns N·H·W for x [N, C] or [N, C, H, W]. Throws if it is below 2, because training needs at least 2 values per
/// channel.
int64_t batch_norm_count(const Shape& x);

/// Batch normalisation (Ioffe and Szegedy, 2015) over every dimension of x [N, C] or [N, C, H, W] except C. If
/// `residual` is defined, it is added before the relu. Writes the batch's `mean` and `inverse_deviation` =
/// 1/sqrt(variance + epsilon), each [C], and updates the running statistics. x, residual and y have the same shape,
/// dtype and format.
inline constinit Kernel<void(const Tensor& x, const Tensor& residual, const BatchNormParameters&,
                             const BatchNormOptions&, Tensor& y, Tensor& mean, Tensor& inverse_deviation)>
    batch_norm_training{"batch_norm_training"};
/// Batch normalisation with the running statistics, which do not change.
inline constinit Kernel<void(const Tensor& x, const Tensor& residual, const BatchNormParameters&,
                             const BatchNormOptions&, Tensor& y)>
    batch_norm_inference{"batch_norm_inference"};

/// The inputs of the backward of `batch_norm_training`. y is needed only with relu.
struct BatchNormSaved {
  Tensor x, y, gamma, mean, inverse_deviation;
};
/// Writes dx, dgamma and dbeta. If dresidual is defined, writes dy through the relu to it.
inline constinit Kernel<void(const Tensor& dy, const BatchNormSaved&, bool relu, Tensor& dx, Tensor& dgamma,
                             Tensor& dbeta, Tensor& dresidual)>
    batch_norm_backward{"batch_norm_backward"};

/// Local response normalisation across channels (Krizhevsky et al., 2012) with PyTorch's parameters: y = x / (k +
/// alpha/size · Σ x²)^beta. The sum is over `size` channels around each channel.
struct LocalResponseNormOptions {
  int64_t size = 5;
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1.0;
};
/// `denominator`, with the shape, dtype and format of x, is k + alpha/size · Σ x².
inline constinit Kernel<void(const Tensor& x, const LocalResponseNormOptions&, Tensor& y, Tensor& denominator)>
    local_response_norm{"local_response_norm"};
inline constinit Kernel<void(const Tensor& dy, const Tensor& x, const Tensor& denominator,
                             const LocalResponseNormOptions&, Tensor& dx)>
    local_response_norm_backward{"local_response_norm_backward"};

}  // namespace tern::kernels
