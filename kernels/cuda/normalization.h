#pragma once

#include "tern/kernels/normalization.h"

namespace tern::cuda {

void batch_norm_training(const Tensor& x, const Tensor& residual, const kernels::BatchNormParameters& parameters,
                         const kernels::BatchNormOptions& options, Tensor& y, Tensor& mean, Tensor& inverse_deviation);
void batch_norm_inference(const Tensor& x, const Tensor& residual, const kernels::BatchNormParameters& parameters,
                          const kernels::BatchNormOptions& options, Tensor& y);
void batch_norm_backward(const Tensor& dy, const kernels::BatchNormSaved& saved, bool relu, Tensor& dx, Tensor& dgamma,
                         Tensor& dbeta, Tensor& dresidual);
void local_response_norm(const Tensor& x, const kernels::LocalResponseNormOptions& options, Tensor& y,
                         Tensor& denominator);
void local_response_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& denominator,
                                  const kernels::LocalResponseNormOptions& options, Tensor& dx);

}  // namespace tern::cuda
