#pragma once

#include "tern/kernels/kernel.h"
#include "tern/kernels/options.h"

namespace tern::kernels {

/// Tensors of a batch normalisation. Each is [C], of `parameter_dtype` of x.
struct BatchNormParameters {
  Tensor gamma, beta;
  Tensor running_mean, running_variance;
};

/// Returns N·H·W for x [N, C] or [N, C, H, W]. Throws if it is below 2, because training needs at least 2 values per
/// channel.
int64_t batch_norm_count(const Shape& x);

/// A running statistic after a batch. If momentum is 0 or 1, only one of the two counts, even if the other is not
/// finite.
template <class T>
constexpr T updated_statistic(T running, T batch, T momentum) {
  return momentum == 0 ? running : momentum == 1 ? batch : (1 - momentum) * running + momentum * batch;
}

/// Batch normalisation (Ioffe and Szegedy, 2015) over every dimension of x [N, C] or [N, C, H, W] except C. If
/// `residual` is defined, it is added before the relu. Writes the batch's `mean` and `inverse_deviation` =
/// 1/sqrt(variance + epsilon), each [C], and updates the running statistics. x, residual and y have the same shape,
/// dtype and format. If `passed` is defined, writes the bits of y to it, see `store_passed`. On CUDA the variance of a
/// channel loses precision if the channel's first element lies many deviations from the mean.
inline constinit Kernel<void(const Tensor& x, const Tensor& residual, const BatchNormParameters&,
                             const BatchNormOptions&, Tensor& y, Tensor& passed, Tensor& mean,
                             Tensor& inverse_deviation)>
    batch_norm_training{"batch_norm_training"};
/// Batch normalisation with the running statistics, which do not change.
inline constinit Kernel<void(const Tensor& x, const Tensor& residual, const BatchNormParameters&,
                             const BatchNormOptions&, Tensor& y)>
    batch_norm_inference{"batch_norm_inference"};

/// The number of bytes of one bit for each element of a tensor.
constexpr int64_t passed_bytes(int64_t numel) { return (numel + 7) / 8; }
/// Writes a bit for each element of y, a tensor of the CPU: whether the relu that gave y lets the element's gradient
/// pass. It is 1 unless y <= 0, so also for NaN. Element i in storage order has bit i % 8 of byte i / 8. The bits
/// behind the last element are 0. passed: u8 [passed_bytes(numel)].
void store_passed(const Tensor& y, Tensor& passed);

/// The inputs of the backward of `batch_norm_training`. With relu, the CPU reads y, and a GPU reads its bits `passed`.
struct BatchNormSaved {
  Tensor x, y, passed, gamma, mean, inverse_deviation;
};
/// Writes dx, dgamma and dbeta. If dresidual is defined, writes dy through the relu to it.
inline constinit Kernel<void(const Tensor& dy, const BatchNormSaved&, bool relu, Tensor& dx, Tensor& dgamma,
                             Tensor& dbeta, Tensor& dresidual)>
    batch_norm_backward{"batch_norm_backward"};

/// `denominator`, with the shape, dtype and format of x, is k + alpha/size · Σ x².
inline constinit Kernel<void(const Tensor& x, const LocalResponseNormOptions&, Tensor& y, Tensor& denominator)>
    local_response_norm{"local_response_norm"};
inline constinit Kernel<void(const Tensor& dy, const Tensor& x, const Tensor& denominator,
                             const LocalResponseNormOptions&, Tensor& dx)>
    local_response_norm_backward{"local_response_norm_backward"};

/// Layer normalisation (Ba, Kiros and Hinton, "Layer normalization", 2016) of the rows of a matrix: y[r, :] = (x[r, :]
/// - mean) · inverse_deviation · gamma + beta, with the mean of row r, and inverse_deviation = 1/sqrt(variance +
/// epsilon), the variance without correction. x, y: [R, C], row-major. gamma, beta: [C]. `mean` and
/// `inverse_deviation`: [R], saved for the backward. All but x and y are of `parameter_dtype` of x.
inline constinit Kernel<void(const Tensor& x, const Tensor& gamma, const Tensor& beta, double epsilon, Tensor& y,
                             Tensor& mean, Tensor& inverse_deviation)>
    layer_norm{"layer_norm"};

/// The inputs of the backward of `layer_norm`.
struct LayerNormSaved {
  Tensor x, gamma, mean, inverse_deviation;
};
/// Writes dx [R, C], dgamma and dbeta [C].
inline constinit Kernel<void(const Tensor& dy, const LayerNormSaved&, Tensor& dx, Tensor& dgamma, Tensor& dbeta)>
    layer_norm_backward{"layer_norm_backward"};

}  // namespace tern::kernels
