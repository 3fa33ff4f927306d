#include "tern/kernels/cpu/channels.h"
#include "tern/kernels/cpu/map.h"
#include "tern/kernels/cpu/normalization.h"

namespace tern::cpu {
namespace {

/// What a channel's gradient is made of: dx = d · scale + offset + (x - mean) · slope.
struct Coefficients {
  float *scale, *offset, *slope;
};

/// Adds the chunks' sums of d and d · (x - mean) into dbeta and dgamma, and makes the coefficients.
void finish_sums(const ChannelLayout& layout, const float* sums, const float* products,
                 const kernels::BatchNormSaved& saved, float* dgamma, float* dbeta, const Coefficients& coefficients) {
  const float *gamma = saved.gamma.data<float>(), *inverse = saved.inverse_deviation.data<float>();
  const auto elements = static_cast<double>(layout.count);
  for (int64_t c = 0; c < layout.channels; ++c) {
    double sum = 0, product = 0;
    for (int64_t k = 0; k < layout.chunks; ++k) {
      sum += sums[k * layout.channels + c];
      product += products[k * layout.channels + c];
    }
    const double deviation = inverse[c], scale = gamma[c] * deviation;
    dbeta[c] = static_cast<float>(sum);
    dgamma[c] = static_cast<float>(product * deviation);
    coefficients.scale[c] = static_cast<float>(scale);
    coefficients.offset[c] = static_cast<float>(-scale * sum / elements);
    coefficients.slope[c] = static_cast<float>(-scale * deviation * deviation * product / elements);
  }
}

/// The two passes over a batch whose gradient through the relu at element i is `gradient(i)`. The first calls
/// `keep(i, gradient)`, the second reads `kept(i)`.
template <class T, class Gradient, class Keep, class Kept>
void two_passes(const kernels::BatchNormSaved& saved, Gradient gradient, Keep keep, Kept kept, Tensor& dx,
                Tensor& dgamma, Tensor& dbeta) {
  const ChannelLayout layout(saved.x);
  const int64_t channels = layout.channels;
  const Tensor partials = Tensor::empty({2, layout.chunks, channels}), table = Tensor::empty({3, channels});
  float *sums = partials.data<float>(), *products = sums + layout.chunks * channels;
  const float* center = saved.mean.data<float>();
  const T* x = saved.x.data<T>();
  chunk_sums(layout, sums, products, [=](int64_t i, int64_t, int64_t c) {
    const float d = gradient(i);
    keep(i, d);
    return Terms{d, d * (load(x + i) - center[c])};
  });
  float* row = table.data<float>();
  const Coefficients k{row, row + channels, row + 2 * channels};
  finish_sums(layout, sums, products, saved, dgamma.data<float>(), dbeta.data<float>(), k);
  T* out = dx.data<T>();
  for_each_in_channels(layout, [=](int64_t i, int64_t c) {
    store(out + i, kept(i) * k.scale[c] + ((load(x + i) - center[c]) * k.slope[c] + k.offset[c]));
  });
}

}  // namespace

void batch_norm_backward(const Tensor& dy, const kernels::BatchNormSaved& saved, bool relu, Tensor& dx, Tensor& dgamma,
                         Tensor& dbeta, Tensor& dresidual) {
  const Tensor d_out = dy.to(saved.x.format());
  visit_fast(saved.x.dtype(), "batch_norm_backward", [&]<class T>(T) {
    const T* d = d_out.data<T>();
    const T* y = relu ? saved.y.data<T>() : nullptr;
    const auto plain = [=](int64_t i) { return load(d + i); };
    const auto through_relu = [=](int64_t i) { return load(y + i) <= 0 ? 0.0f : load(d + i); };
    const auto forget = [](int64_t, float) {};
    if (dresidual.defined()) {
      T* beside = dresidual.data<T>();
      const auto keep = [=](int64_t i, float value) { store(beside + i, value); };
      const auto kept = [=](int64_t i) { return load(beside + i); };
      if (relu)
        two_passes<T>(saved, through_relu, keep, kept, dx, dgamma, dbeta);
      else
        two_passes<T>(saved, plain, keep, kept, dx, dgamma, dbeta);
    } else if (relu) {
      two_passes<T>(saved, through_relu, forget, through_relu, dx, dgamma, dbeta);
    } else {
      two_passes<T>(saved, plain, forget, plain, dx, dgamma, dbeta);
    }
  });
}

}  // namespace tern::cpu
