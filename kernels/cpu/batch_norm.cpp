#include <cmath>
#include <limits>

#include "tern/kernels/cpu/channels.h"
#include "tern/kernels/cpu/map.h"
#include "tern/kernels/cpu/normalization.h"

namespace tern::cpu {
namespace {

using kernels::BatchNormOptions;
using kernels::BatchNormParameters;

/// Writes the mean of every channel and the sum of squared distances from it, in one pass over x: each chunk's sums are
/// taken about its own first element, and the chunks meet in f64 (Chan, Golub and LeVeque, 1983).
template <class T>
void channel_moments(const ChannelLayout& layout, const T* x, double* mean, double* squares) {
  const int64_t channels = layout.channels, chunks = layout.chunks;
  const Tensor partials = Tensor::empty({2, chunks, channels});
  float *sum = partials.data<float>(), *square = sum + chunks * channels;
  chunk_sums(layout, sum, square, [=](int64_t i, int64_t begin, int64_t) {
    const float distance = load(x + i) - load(x + begin);
    return Terms{distance, distance * distance};
  });
  parallel_vectorized(channels, 16, [=](int64_t first, int64_t last) {
    const auto chunk_mean = [=](int64_t k, int64_t c) {
      return double{load(x + layout.chunk_begin(k, c))} +
             double{sum[k * channels + c]} / static_cast<double>(layout.chunk_count(k));
    };
    for (int64_t c = first; c < last; ++c) {
      double total = 0;
      for (int64_t k = 0; k < chunks; ++k) total += chunk_mean(k, c) * static_cast<double>(layout.chunk_count(k));
      const double average = total / static_cast<double>(layout.count);
      double spread = 0;
      for (int64_t k = 0; k < chunks; ++k) {
        const auto elements = static_cast<double>(layout.chunk_count(k));
        const double shift = sum[k * channels + c], away = chunk_mean(k, c) - average;
        spread += square[k * channels + c] - shift * shift / elements + elements * away * away;
      }
      mean[c] = average;
      squares[c] = std::max(spread, 0.0);
    }
  });
}

/// y = (x - mean) · inverse_deviation · gamma + beta, + residual, through the relu.
void normalize(const Tensor& x, const Tensor& residual, const BatchNormParameters& parameters, bool relu,
               const Tensor& mean, const Tensor& inverse_deviation, Tensor& y) {
  const ChannelLayout layout(x);
  const Tensor scales = Tensor::empty({layout.channels});
  const float *gamma = parameters.gamma.data<float>(), *beta = parameters.beta.data<float>();
  const float *center = mean.data<float>(), *inverse = inverse_deviation.data<float>();
  float* scale = scales.data<float>();
  for (int64_t c = 0; c < layout.channels; ++c) scale[c] = gamma[c] * inverse[c];
  const float floor = relu ? 0.0f : -std::numeric_limits<float>::infinity();
  visit_fast(x.dtype(), "batch_norm", [&]<class T>(T) {
    const T* in = x.data<T>();
    T* out = y.data<T>();
    const auto normalized = [=](int64_t i, int64_t c) { return (load(in + i) - center[c]) * scale[c] + beta[c]; };
    if (!residual.defined()) {
      for_each_in_channels(layout, [=](int64_t i, int64_t c) {
        const float value = normalized(i, c);
        store(out + i, value < floor ? floor : value);
      });
      return;
    }
    const T* beside = residual.data<T>();
    for_each_in_channels(layout, [=](int64_t i, int64_t c) {
      const float value = normalized(i, c) + load(beside + i);
      store(out + i, value < floor ? floor : value);
    });
  });
}

}  // namespace

void batch_norm_training(const Tensor& x, const Tensor& residual, const BatchNormParameters& parameters,
                         const BatchNormOptions& options, Tensor& y, Tensor& mean, Tensor& inverse_deviation) {
  const auto elements = static_cast<double>(kernels::batch_norm_count(x.shape()));
  const ChannelLayout layout(x);
  const Tensor moments = Tensor::empty({2, layout.channels}, {.dtype = DType::f64});
  const double *average = moments.data<double>(), *squares = average + layout.channels;
  visit_fast(x.dtype(), "batch_norm_training", [&]<class T>(T) {
    channel_moments(layout, x.data<T>(), moments.data<double>(), moments.data<double>() + layout.channels);
  });
  const auto follow = [&](float& running, double batch) {
    running = static_cast<float>((1 - options.momentum) * running + options.momentum * batch);
  };
  for (int64_t c = 0; c < layout.channels; ++c) {
    mean.data<float>()[c] = static_cast<float>(average[c]);
    inverse_deviation.data<float>()[c] = static_cast<float>(1 / std::sqrt(squares[c] / elements + options.epsilon));
    follow(parameters.running_mean.data<float>()[c], average[c]);
    follow(parameters.running_variance.data<float>()[c], squares[c] / (elements - 1));
  }
  normalize(x, residual, parameters, options.relu, mean, inverse_deviation, y);
}

void batch_norm_inference(const Tensor& x, const Tensor& residual, const BatchNormParameters& parameters,
                          const BatchNormOptions& options, Tensor& y) {
  const Tensor inverse_deviation = Tensor::empty_like(parameters.running_variance);
  const float* variance = parameters.running_variance.data<float>();
  for (int64_t c = 0; c < x.size(1); ++c)
    inverse_deviation.data<float>()[c] = static_cast<float>(1 / std::sqrt(variance[c] + options.epsilon));
  normalize(x, residual, parameters, options.relu, parameters.running_mean, inverse_deviation, y);
}

}  // namespace tern::cpu
