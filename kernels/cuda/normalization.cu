#include <algorithm>

#include "tern/kernels/cuda/map.h"
#include "tern/kernels/cuda/reduction.h"
#include "tern/kernels/kernel.h"
#include "tern/kernels/normalization.h"
#include "tern/kernels/provide.h"

namespace tern::cuda {
namespace {

/// Σ d and Σ d² of a channel, with d the distance from its first element: this loses no precision if the mean is far
/// from 0. But it does if that element lies many deviations from the mean.
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
    running_mean[c] = static_cast<float>(kernels::updated_statistic<double>(running_mean[c], average, momentum));
    running_variance[c] =
        static_cast<float>(kernels::updated_statistic<double>(running_variance[c], squares / (count - 1), momentum));
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

/// As map_kernel, and the bit of each element that passes the relu. Array 0 of the walk is y, in its storage order. A
/// thread has the eight elements of a byte, and moves `Width` at a time if the arrays take such packs.
template <int Width, class Function, class T, class... X>
__global__ void rectify_kernel(Function function, Walk<1 + sizeof...(X)> walk, bool packs, T* y, uint8_t* passed,
                               X... x) {
  for (int64_t i = global_thread() * 8; i < walk.count; i += global_threads() * 8) {
    unsigned bits = 0;
    const auto note = [&](int j, T value) { bits |= float(value) <= 0 ? 0u : 1u << j; };
    if (packs && i + 8 <= walk.count) {
#pragma unroll
      for (int first = 0; first < 8; first += Width) {
        int64_t at[1 + sizeof...(X)] = {};
        walk.find(i + first, at);
        const auto pack = map_pack<T, Width>(function, walk, at, x...);
        store_pack(y + i + first, pack);
#pragma unroll
        for (int j = 0; j < Width; ++j) note(first + j, pack.values[j]);
      }
    } else {
      for (int j = 0; j < 8 && i + j < walk.count; ++j) {
        int64_t at[1 + sizeof...(X)] = {};
        walk.find(i + j, at);
        y[i + j] = map_pack<T, 1>(function, walk, at, x...).values[0];
        note(j, y[i + j]);
      }
    }
    passed[i / 8] = static_cast<uint8_t>(bits);
  }
}

void normalize(const char* operation, const Tensor& x, const Tensor& residual, bool relu, const Tensor& mean,
               const Tensor& scale, const Tensor& beta, Tensor& y, const Tensor& passed) {
  if (x.numel() == 0) return;
  visit_fast(x.dtype(), operation, [&]<class T>(T) {
    const ChannelMap map(operation, x.shape());
    const auto run = [&]<class... X>(const ChannelMap::Array<X>&... arrays) {
      if (!passed.defined()) return map.run<T>(Normalize{relu}, y, arrays...);
      const auto walk = map.walk(y, arrays...);
      const auto fits = [&]<int Width>(std::integral_constant<int, Width>) {
        return walk.takes_packs(Width) && takes_packs<Width>(y.data<T>()) && (takes_packs<Width>(arrays.data) && ...);
      };
      const auto rectify = [&]<int Width>(std::integral_constant<int, Width>, bool packs) {
        launch(operation, y.device(), grid_over(passed.numel()), rectify_kernel<Width, Normalize, T, X...>,
               Normalize{relu}, walk, packs, y.data<T>(), passed.data<uint8_t>(), arrays.data...);
      };
      constexpr std::integral_constant<int, 8> kByte;
      constexpr std::integral_constant<int, 4> kHalf;  // 14·14 pixels take no packs of 8
      if (!fits(kByte) && fits(kHalf)) return rectify(kHalf, true);
      rectify(kByte, fits(kByte));
    };
    if (residual.defined())
      run(map.of<T>(x), map.each(mean), map.each(scale), map.each(beta), map.of<T>(residual));
    else
      run(map.of<T>(x), map.each(mean), map.each(scale), map.each(beta));
  });
}

void batch_norm_training(const Tensor& x, const Tensor& residual, const kernels::BatchNormParameters& parameters,
                         const kernels::BatchNormOptions& options, Tensor& y, Tensor& passed, Tensor& mean,
                         Tensor& inverse_deviation) {
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
  normalize(operation, x, residual, options.relu, mean, scale, parameters.beta, y, passed);
}

void batch_norm_inference(const Tensor& x, const Tensor& residual, const kernels::BatchNormParameters& parameters,
                          const kernels::BatchNormOptions& options, Tensor& y) {
  Tensor scale = Tensor::empty_like(parameters.gamma);
  map("batch_norm_inference", InferenceScale{static_cast<float>(options.epsilon)}, scale, parameters.gamma,
      parameters.running_variance);
  normalize("batch_norm_inference", x, residual, options.relu, parameters.running_mean, scale, parameters.beta, y, {});
}

/// Σ d and Σ d · (x - mean) of a channel, with d the gradient through the relu. There is no relu if `passed` has no
/// bytes. If `through` is not null, d is also stored there.
template <class T>
struct GradientSums {
  const T *dy, *x;
  Bits passed;
  const float* mean;
  T* through;
  template <int Width>
  __device__ void add(int64_t at, int64_t channel, float* sums) const {
    auto gradients = load_pack<T, Width>(dy + at);
    const auto inputs = load_pack<T, Width>(x + at);
    const auto means = load_pack<float, Width>(mean + channel);
    Pack<bool, Width> passes;
    if (passed.bytes != nullptr) passes = load_run<Width>(passed, at, false);
#pragma unroll
    for (int j = 0; j < Width; ++j) {
      if (passed.bytes != nullptr && !passes.values[j]) gradients.values[j] = static_cast<T>(0.0f);
      const auto d = float(gradients.values[j]);
      sums[j] += d;
      sums[Width + j] += d * (float(inputs.values[j]) - means.values[j]);
    }
    if (through != nullptr) store_pack(through + at, gradients);
  }
};

/// dbeta = Σ d, dgamma = Σ d · x', with x' = (x - mean) · inverse_deviation over m elements. Also the coefficients of
/// dx = gamma · inverse_deviation · (d - dbeta/m - x' · dgamma/m), written as scale · d + slope · (x - mean) + shift.
struct StoreGradients {
  double count;
  const float *gamma, *inverse_deviation;
  float *dgamma, *dbeta, *scale, *slope, *shift;
  __device__ void operator()(int64_t c, const double* totals) const {
    const double inverse = inverse_deviation[c], factor = gamma[c] * inverse;
    dbeta[c] = static_cast<float>(totals[0]);
    dgamma[c] = static_cast<float>(totals[1] * inverse);
    scale[c] = static_cast<float>(factor);
    slope[c] = static_cast<float>(-factor * inverse * inverse * totals[1] / count);
    shift[c] = static_cast<float>(-factor * totals[0] / count);
  }
};

struct InputGradient {
  __device__ float operator()(float dy, float x, float mean, float scale, float slope, float shift,
                              bool passed = true) const {
    return scale * (passed ? dy : 0) + slope * (x - mean) + shift;
  }
};

void batch_norm_backward(const Tensor& dy, const kernels::BatchNormSaved& saved, bool relu, Tensor& dx, Tensor& dgamma,
                         Tensor& dbeta, Tensor& dresidual) {
  const char* operation = "batch_norm_backward";
  const Tensor &x = saved.x, scale = Tensor::empty_like(dgamma), slope = Tensor::empty_like(dgamma),
               shift = Tensor::empty_like(dgamma);
  const int64_t channels = x.size(1);
  if (x.numel() == 0) return;
  check(!relu || saved.passed.defined(), operation, ": relu without the bits of y, on CUDA expected them");
  visit_fast(x.dtype(), operation, [&]<class T>(T) {
    const GradientSums<T> each{dy.data<T>(), x.data<T>(), Bits{relu ? saved.passed.data<uint8_t>() : nullptr},
                               saved.mean.data<float>(), dresidual.defined() ? dresidual.data<T>() : nullptr};
    constexpr int kWidth = kPackBytes / sizeof(T);
    const bool packs = takes_packs<kWidth>(each.dy) && takes_packs<kWidth>(each.x) && takes_packs<kWidth>(each.mean) &&
                       takes_packs<kWidth>(each.through);
    sum<2, kWidth>(operation, x.device(), Summation::per_channel(operation, x), packs, each,
                   StoreGradients{.count = static_cast<double>(x.numel() / channels),
                                  .gamma = saved.gamma.data<float>(),
                                  .inverse_deviation = saved.inverse_deviation.data<float>(),
                                  .dgamma = dgamma.data<float>(),
                                  .dbeta = dbeta.data<float>(),
                                  .scale = scale.data<float>(),
                                  .slope = slope.data<float>(),
                                  .shift = shift.data<float>()});
    // If the gradient through the relu was stored in dresidual, the second pass reads it instead of dy and the bits.
    const Tensor& d = dresidual.defined() ? dresidual : dy;
    const ChannelMap map(operation, x.shape());
    const auto run = [&](const auto&... passed) {
      map.run<T>(InputGradient{}, dx, map.of<T>(d), map.of<T>(x), map.each(saved.mean), map.each(scale),
                 map.each(slope), map.each(shift), passed...);
    };
    if (relu && !dresidual.defined())
      run(map.bits(saved.passed, x));
    else
      run();
  });
}

/// The window of channels around each channel. As in PyTorch, if the size is even, there is one more below than above.
struct Window {
  Window(const Tensor& x, const kernels::LocalResponseNormOptions& options)
      : channels(x.size(1)),
        step(strides4(x).c),
        below(options.size / 2),
        above(options.size - 1 - below),
        k(static_cast<float>(options.k)),
        scale(static_cast<float>(options.alpha / static_cast<double>(options.size))),
        beta(static_cast<float>(options.beta)),
        factor(static_cast<float>(2 * options.alpha * options.beta / static_cast<double>(options.size))) {}

  int64_t channels, step, below, above;
  float k, scale, beta, factor;
};

/// base^exponent for base > 0.
__device__ float power(float base, float exponent) { return exp2f(exponent * log2f(base)); }

/// A thread has the channels of a pack.
template <class T, int Width>
struct ResponseNorm {
  Window window;
  Images images;
  const T* x;
  T *y, *denominator;
  __device__ void operator()(const Images::Place& at) const {
    const int64_t here = images.offset(at.n, at.c, at.h, at.w);
    float own[Width] = {}, bases[Width] = {};
    const int64_t last = std::min(at.c + Width - 1 + window.above, window.channels - 1);
    for (int64_t q = std::max(at.c - window.below, int64_t{0}); q <= last; ++q) {
      const auto value = float(x[here + (q - at.c) * window.step]);
#pragma unroll
      for (int k = 0; k < Width; ++k) {
        const int64_t distance = q - (at.c + k);
        if (distance == 0) own[k] = value;
        if (distance >= -window.below && distance <= window.above) bases[k] += value * value;
      }
    }
#pragma unroll
    for (int k = 0; k < Width; ++k) {
      bases[k] = window.k + window.scale * bases[k];
      own[k] *= power(bases[k], -window.beta);
    }
    store_pack(denominator + here, bases);
    store_pack(y + here, own);
  }
};

/// With D the denominator: dx[c] = dy[c]·D[c]^-beta - 2·alpha·beta/size · x[c] · Σ dy[q]·x[q]·D[q]^(-beta-1). The sum
/// is over all channels q whose window holds c. A thread has the channels of a pack, and computes each power once.
template <class T, int Width>
struct ResponseNormBackward {
  Window window;
  Images images;
  const T *dy, *x, *denominator;
  T* dx;
  __device__ void operator()(const Images::Place& at) const {
    const int64_t here = images.offset(at.n, at.c, at.h, at.w);
    float direct[Width] = {}, sums[Width] = {};
    const int64_t last = std::min(at.c + Width - 1 + window.below, window.channels - 1);
    for (int64_t q = std::max(at.c - window.above, int64_t{0}); q <= last; ++q) {
      const int64_t there = here + (q - at.c) * window.step;
      const auto base = float(denominator[there]), gradient = float(dy[there]);
      const float scaled = gradient * power(base, -window.beta), term = scaled * float(x[there]) / base;
#pragma unroll
      for (int k = 0; k < Width; ++k) {
        const int64_t distance = q - (at.c + k);
        if (distance == 0) direct[k] = scaled;
        if (distance >= -window.above && distance <= window.below) sums[k] += term;
      }
    }
#pragma unroll
    for (int k = 0; k < Width; ++k) direct[k] -= window.factor * float(x[here + k * window.step]) * sums[k];
    store_pack(dx + here, direct);
  }
};

void local_response_norm(const Tensor& x, const kernels::LocalResponseNormOptions& options, Tensor& y,
                         Tensor& denominator) {
  const char* operation = "local_response_norm";
  kernels::check_alike(operation, x, y);
  kernels::check_alike(operation, x, denominator);
  visit_packs(operation, x, {y.raw_data(), denominator.raw_data()},
              [&]<class T, int Width>(T, std::integral_constant<int, Width>) {
                const Images images(operation, x, Width);
                for_each_place(operation, x.device(), images,
                               ResponseNorm<T, Width>{Window(x, options), images, x.data<T>(), y.data<T>(),
                                                      denominator.data<T>()});
              });
}

void local_response_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& denominator,
                                  const kernels::LocalResponseNormOptions& options, Tensor& dx) {
  const char* operation = "local_response_norm_backward";
  kernels::check_alike(operation, dy, x);
  kernels::check_alike(operation, dy, denominator);
  kernels::check_alike(operation, dy, dx);
  visit_packs(operation, x, {dx.raw_data()}, [&]<class T, int Width>(T, std::integral_constant<int, Width>) {
    const Images images(operation, x, Width);
    for_each_place(operation, x.device(), images,
                   ResponseNormBackward<T, Width>{Window(x, options), images, dy.data<T>(), x.data<T>(),
                                                  denominator.data<T>(), dx.data<T>()});
  });
}

}  // namespace

void provide_normalization() {
  kernels::batch_norm_training.provide(Target::cuda, batch_norm_training);
  kernels::batch_norm_inference.provide(Target::cuda, batch_norm_inference);
  kernels::batch_norm_backward.provide(Target::cuda, batch_norm_backward);
  kernels::local_response_norm.provide(Target::cuda, local_response_norm);
  kernels::local_response_norm_backward.provide(Target::cuda, local_response_norm_backward);
}

}  // namespace tern::cuda
