#include "tern/kernels/cuda/channel_map.h"
#include "tern/kernels/cuda/normalization.h"
#include "tern/kernels/cuda/summation.h"

namespace tern::cuda {
namespace {

/// Σ d and Σ d · (x - mean) of a channel, d the gradient through the relu. y is null without one, and so is where d
/// goes unless it is asked for.
template <class T>
struct GradientSums {
  const T *dy, *x, *y;
  const float* mean;
  T* through;
  template <int Width>
  __device__ void add(int64_t at, int64_t channel, float* sums) const {
    const auto gradients = load_pack<T, Width>(dy + at), inputs = load_pack<T, Width>(x + at),
               outputs = load_pack<T, Width>((y != nullptr ? y : x) + at);
    Pack<T, Width> passed;
#pragma unroll
    for (int j = 0; j < Width; ++j) {
      const float d = y != nullptr && float(outputs.values[j]) <= 0 ? 0.0f : float(gradients.values[j]);
      sums[j] += d;
      sums[Width + j] += d * (float(inputs.values[j]) - mean[channel + j]);
      passed.values[j] = static_cast<T>(d);
    }
    if (through != nullptr) store_pack(through + at, passed);
  }
};

/// dbeta = Σ d, dgamma = Σ d · x', and what dx = gamma · inverse_deviation · (d - dbeta/m - x' · dgamma/m) is made of:
/// dx = scale · d + slope · (x - mean) + shift, for x' = (x - mean) · inverse_deviation over m elements.
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
  __device__ float operator()(float dy, float x, float mean, float scale, float slope, float shift, float y = 1) const {
    return scale * (y <= 0 ? 0 : dy) + slope * (x - mean) + shift;
  }
};

}  // namespace

void batch_norm_backward(const Tensor& dy, const kernels::BatchNormSaved& saved, bool relu, Tensor& dx, Tensor& dgamma,
                         Tensor& dbeta, Tensor& dresidual) {
  const char* operation = "batch_norm_backward";
  const Tensor &x = saved.x, scale = Tensor::empty_like(dgamma), slope = Tensor::empty_like(dgamma),
               shift = Tensor::empty_like(dgamma);
  const int64_t channels = x.size(1);
  if (x.numel() == 0) return;
  visit_fast(x.dtype(), operation, [&]<class T>(T) {
    const GradientSums<T> each{dy.data<T>(), x.data<T>(), relu ? saved.y.data<T>() : nullptr, saved.mean.data<float>(),
                               dresidual.defined() ? dresidual.data<T>() : nullptr};
    const bool packs = is_aligned(each.dy, kPackBytes) && is_aligned(each.x, kPackBytes) &&
                       is_aligned(each.y, kPackBytes) && is_aligned(each.through, kPackBytes);
    sum<2, kPackBytes / sizeof(T)>(operation, x.device(), Summation::per_channel(operation, x), packs, each,
                                   StoreGradients{.count = static_cast<double>(x.numel() / channels),
                                                  .gamma = saved.gamma.data<float>(),
                                                  .inverse_deviation = saved.inverse_deviation.data<float>(),
                                                  .dgamma = dgamma.data<float>(),
                                                  .dbeta = dbeta.data<float>(),
                                                  .scale = scale.data<float>(),
                                                  .slope = slope.data<float>(),
                                                  .shift = shift.data<float>()});
    // Where the gradient through the relu is written, the rest reads it alone.
    const Tensor& d = dresidual.defined() ? dresidual : dy;
    const ChannelMap map(operation, x.shape());
    const auto run = [&](auto... through) {
      map.run(InputGradient{}, dx, map.of<T>(dx), map.of<T>(d), map.of<T>(x), map.each(saved.mean), map.each(scale),
              map.each(slope), map.each(shift), through...);
    };
    if (relu && !dresidual.defined())
      run(map.of<T>(saved.y));
    else
      run();
  });
}

}  // namespace tern::cuda
