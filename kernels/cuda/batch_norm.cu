#include <algorithm>

#include "tern/kernels/cuda/channel_map.h"
#include "tern/kernels/cuda/normalization.h"
#include "tern/kernels/cuda/summation.h"

namespace tern::cuda {
namespace {

/// Σ d and Σ d² of a channel, d the distance from its first element: no digits are lost where the mean is far from 0.
template <class T>
struct Moments {
  const T* x;
  int64_t channel_step;
  template <int Width>
  __device__ void add(int64_t at, int64_t channel, float* sums) const {
    const auto pack = load_pack<T, Width>(x + at);
#pragma unroll
    for (int j = 0; j < Width; ++j) {
      const float d = float(pack.values[j]) - float(x[(channel + j) * channel_step]);
      sums[j] += d;
      sums[Width + j] += d * d;
    }
  }
};

template <class T>
struct StoreStatistics {
  const T* x;
  int64_t channel_step;
  double count, epsilon, momentum;
  const float* gamma;
  float *mean, *inverse_deviation, *scale, *running_mean, *running_variance;
  __device__ void operator()(int64_t c, const double* totals) const {
    const double distance = totals[0] / count, average = double(float(x[c * channel_step])) + distance;
    const double squares = std::max(totals[1] - totals[0] * distance, 0.0);
    const auto inverse = static_cast<float>(1 / sqrt(squares / count + epsilon));
    mean[c] = static_cast<float>(average);
    inverse_deviation[c] = inverse;
    scale[c] = gamma[c] * inverse;
    running_mean[c] = static_cast<float>((1 - momentum) * running_mean[c] + momentum * average);
    running_variance[c] = static_cast<float>((1 - momentum) * running_variance[c] + momentum * squares / (count - 1));
  }
};

struct InferenceScale {
  float epsilon;
  __device__ float operator()(float gamma, float variance) const { return gamma * (1 / sqrtf(variance + epsilon)); }
};

struct Normalize {
  bool relu;
  __device__ float operator()(float x, float mean, float scale, float beta, float residual = 0) const {
    const float y = (x - mean) * scale + beta + residual;
    return relu && y < 0 ? 0 : y;
  }
};

void normalize(const char* operation, const Tensor& x, const Tensor& residual, bool relu, const Tensor& mean,
               const Tensor& scale, const Tensor& beta, Tensor& y) {
  visit_fast(x.dtype(), operation, [&]<class T>(T) {
    const ChannelMap channels(operation, x.shape());
    if (residual.defined())
      channels.run(Normalize{relu}, y, channels.of<T>(y), channels.of<T>(x), channels.each(mean), channels.each(scale),
                   channels.each(beta), channels.of<T>(residual));
    else
      channels.run(Normalize{relu}, y, channels.of<T>(y), channels.of<T>(x), channels.each(mean), channels.each(scale),
                   channels.each(beta));
  });
}

}  // namespace

void batch_norm_training(const Tensor& x, const Tensor& residual, const kernels::BatchNormParameters& parameters,
                         const kernels::BatchNormOptions& options, Tensor& y, Tensor& mean, Tensor& inverse_deviation) {
  const char* operation = "batch_norm_training";
  const auto count = static_cast<double>(kernels::batch_norm_count(x.shape()));
  const Tensor scale = Tensor::empty_like(mean);
  const auto summation = Summation::per_channel(operation, x);
  const int64_t channel_step = kernels::strides_in(x, x.shape())[1];
  visit_fast(x.dtype(), operation, [&]<class T>(T) {
    const T* in = x.data<T>();
    sum<2, kPackBytes / sizeof(T)>(operation, x.device(), summation, is_aligned(in, kPackBytes),
                                   Moments<T>{in, channel_step},
                                   StoreStatistics<T>{.x = in,
                                                      .channel_step = channel_step,
                                                      .count = count,
                                                      .epsilon = options.epsilon,
                                                      .momentum = options.momentum,
                                                      .gamma = parameters.gamma.data<float>(),
                                                      .mean = mean.data<float>(),
                                                      .inverse_deviation = inverse_deviation.data<float>(),
                                                      .scale = scale.data<float>(),
                                                      .running_mean = parameters.running_mean.data<float>(),
                                                      .running_variance = parameters.running_variance.data<float>()});
  });
  normalize(operation, x, residual, options.relu, mean, scale, parameters.beta, y);
}

void batch_norm_inference(const Tensor& x, const Tensor& residual, const kernels::BatchNormParameters& parameters,
                          const kernels::BatchNormOptions& options, Tensor& y) {
  Tensor scale = Tensor::empty_like(parameters.gamma);
  map("batch_norm_inference", InferenceScale{static_cast<float>(options.epsilon)}, scale, parameters.gamma,
      parameters.running_variance);
  normalize("batch_norm_inference", x, residual, options.relu, parameters.running_mean, scale, parameters.beta, y);
}

}  // namespace tern::cuda
