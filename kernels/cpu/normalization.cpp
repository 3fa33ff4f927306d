#include <algorithm>
#include <cmath>
#include <limits>

#include "tern/core/tensor.h"
#include "tern/kernels/cpu/exponential.h"
#include "tern/kernels/cpu/map.h"
#include "tern/kernels/cpu/vector.h"
#include "tern/kernels/normalization.h"
#include "tern/kernels/provide.h"

namespace tern::cpu {
namespace {

/// The layout of the elements of each channel in a tensor [N, C] or [N, C, H, W], and the chunks in which a channel is
/// summed. It depends only on shape and format. Channels-last and rank 2: rows of all channels, and a chunk is some
/// rows. Row-major rank 4: planes of one channel, and a chunk is one plane.
struct ChannelLayout {
  explicit ChannelLayout(const Tensor& x)
      : interleaved(x.rank() == 2 || x.format() == MemoryFormat::channels_last),
        channels(x.size(1)),
        count(x.numel() / std::max<int64_t>(1, channels)),
        chunk(interleaved ? std::max<int64_t>(16, kGrain / std::max<int64_t>(1, channels)) : x.shape().numel_from(2)),
        chunks(chunk == 0 ? 0 : (count + chunk - 1) / chunk) {}

  /// Number of elements of one channel in chunk `index`.
  int64_t chunk_count(int64_t index) const { return std::min(chunk, count - index * chunk); }
  /// Offset of the first element of `channel` in chunk `index`.
  int64_t chunk_begin(int64_t index, int64_t channel) const {
    return interleaved ? index * chunk * channels + channel : (index * channels + channel) * chunk;
  }

  bool interleaved;
  int64_t channels, count, chunk, chunks;
};

/// Calls visit(i, c) for every element i, of channel c. Vectorised, in parallel.
template <class Visit>
void for_each_in_channels(const ChannelLayout& layout, Visit visit) {
  const int64_t channels = layout.channels, chunk = layout.chunk;
  if (layout.interleaved) {
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, channels));
    parallel_vectorized(layout.count, grain, [=](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) {
#pragma omp simd
        for (int64_t c = 0; c < channels; ++c) visit(row * channels + c, c);
      }
    });
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, chunk));
  parallel_vectorized(layout.chunks * channels, grain, [=](int64_t first, int64_t last) {
    for (int64_t plane = first; plane < last; ++plane) {
      const int64_t c = plane % channels;
#pragma omp simd
      for (int64_t i = plane * chunk; i < (plane + 1) * chunk; ++i) visit(i, c);
    }
  });
}

struct Terms {
  float first, second;
};

/// Computes two sums over every channel by chunks. terms(i, begin, c) returns two terms for element i of channel c;
/// `begin` is the first element of that channel in the chunk. first[k·C + c] and second[k·C + c] are the sums of these
/// terms over chunk k.
template <class Function>
void chunk_sums(const ChannelLayout& layout, float* first, float* second, Function terms) {
  const int64_t channels = layout.channels, chunk = layout.chunk;
  if (layout.interleaved) {
    parallel_vectorized(layout.chunks, 1, [=](int64_t first_chunk, int64_t last_chunk) {
      constexpr int64_t kStrip = 64;
      for (int64_t k = first_chunk; k < last_chunk; ++k)
        for (int64_t strip = 0; strip < channels; strip += kStrip) {
          const int64_t width = std::min(kStrip, channels - strip), begin = layout.chunk_begin(k, strip);
          float sum[kStrip] = {}, other[kStrip] = {};
          for (int64_t row = 0; row < layout.chunk_count(k); ++row) {
#pragma omp simd
            for (int64_t c = 0; c < width; ++c) {
              const Terms term = terms(begin + row * channels + c, begin + c, strip + c);
              sum[c] += term.first;
              other[c] += term.second;
            }
          }
#pragma omp simd
          for (int64_t c = 0; c < width; ++c) {
            first[k * channels + strip + c] = sum[c];
            second[k * channels + strip + c] = other[c];
          }
        }
    });
    return;
  }
  parallel_vectorized(layout.chunks * channels, 1, [=](int64_t first_plane, int64_t last_plane) {
    for (int64_t plane = first_plane; plane < last_plane; ++plane) {
      const int64_t begin = plane * chunk, c = plane % channels;
      float sum = 0, other = 0;
#pragma omp simd reduction(+ : sum, other)
      for (int64_t i = begin; i < begin + chunk; ++i) {
        const Terms term = terms(i, begin, c);
        sum += term.first;
        other += term.second;
      }
      first[plane] = sum;
      second[plane] = other;
    }
  });
}

using kernels::BatchNormOptions;
using kernels::BatchNormParameters;

/// The mean of some elements, and the sum of squared distances from it.
struct Moments {
  double mean, squares;
};

/// The moments of every `step`-th element, in f64 and in two passes.
template <class T>
Moments precise_moments(const T* x, int64_t count, int64_t step) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) sum += load(x + i * step);
  const double mean = sum / static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) {
    const double distance = load(x + i * step) - mean;
    squares += distance * distance;
  }
  return {mean, squares};
}

/// The moments of the elements of a channel in a chunk, from the f32 sums of their distances from the first one. These
/// lose precision if the first element is an outlier. So if it lies five deviations or more from the mean, which makes
/// the squares 26 times too large, the chunk is summed again.
template <class T>
Moments chunk_moments(const T* x, int64_t count, int64_t step, double sum, double squares) {
  const double shift = sum / static_cast<double>(count), excess = sum * shift;
  if (excess * 26 > squares * 25) return precise_moments(x, count, step);
  return {load(x) + shift, squares - excess};
}

/// Writes the mean of every channel and the sum of squared distances from it, in one pass over x. The sums of a chunk
/// are of distances from its first element, and the chunks are combined in f64 (Chan, Golub and LeVeque, 1983).
template <class T>
void channel_moments(const ChannelLayout& layout, const T* x, double* mean, double* squares) {
  const int64_t channels = layout.channels, chunks = layout.chunks, step = layout.interleaved ? channels : 1;
  const Tensor partials = Tensor::empty({2, chunks, channels});
  float *sum = partials.data<float>(), *square = sum + chunks * channels;
  chunk_sums(layout, sum, square, [=](int64_t i, int64_t begin, int64_t) {
    const float distance = load(x + i) - load(x + begin);
    return Terms{distance, distance * distance};
  });
  parallel_vectorized(channels, 16, [=](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      double elements = 0, average = 0, spread = 0;
      for (int64_t k = 0; k < chunks; ++k) {
        const int64_t count = layout.chunk_count(k), at = k * channels + c;
        const Moments chunk = chunk_moments(x + layout.chunk_begin(k, c), count, step, sum[at], square[at]);
        const auto more = static_cast<double>(count);
        const double away = chunk.mean - average, share = more / (elements + more);
        average += away * share;
        spread += chunk.squares + elements * share * away * away;
        elements += more;
      }
      mean[c] = average;
      squares[c] = std::max(spread, 0.0);
    }
  });
}

/// y = (x - mean) · inverse_deviation · gamma + beta + residual, then the relu.
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

void batch_norm_training(const Tensor& x, const Tensor& residual, const BatchNormParameters& parameters,
                         const BatchNormOptions& options, Tensor& y, Tensor& passed, Tensor& mean,
                         Tensor& inverse_deviation) {
  const auto elements = static_cast<double>(kernels::batch_norm_count(x.shape()));
  const ChannelLayout layout(x);
  const Tensor moments = Tensor::empty({2, layout.channels}, {.dtype = DType::f64});
  const double *average = moments.data<double>(), *squares = average + layout.channels;
  visit_fast(x.dtype(), "batch_norm_training", [&]<class T>(T) {
    channel_moments(layout, x.data<T>(), moments.data<double>(), moments.data<double>() + layout.channels);
  });
  const auto follow = [&](float& running, double batch) {
    running = static_cast<float>(kernels::updated_statistic<double>(running, batch, options.momentum));
  };
  for (int64_t c = 0; c < layout.channels; ++c) {
    mean.data<float>()[c] = static_cast<float>(average[c]);
    inverse_deviation.data<float>()[c] = static_cast<float>(1 / std::sqrt(squares[c] / elements + options.epsilon));
    follow(parameters.running_mean.data<float>()[c], average[c]);
    follow(parameters.running_variance.data<float>()[c], squares[c] / (elements - 1));
  }
  normalize(x, residual, parameters, options.relu, mean, inverse_deviation, y);
  if (passed.defined()) kernels::store_passed(y, passed);
}

void batch_norm_inference(const Tensor& x, const Tensor& residual, const BatchNormParameters& parameters,
                          const BatchNormOptions& options, Tensor& y) {
  const Tensor inverse_deviation = Tensor::empty_like(parameters.running_variance);
  const float* variance = parameters.running_variance.data<float>();
  for (int64_t c = 0; c < x.size(1); ++c)
    inverse_deviation.data<float>()[c] = static_cast<float>(1 / std::sqrt(variance[c] + options.epsilon));
  normalize(x, residual, parameters, options.relu, parameters.running_mean, inverse_deviation, y);
}

/// The coefficients of a channel's gradient: dx = d · scale + offset + (x - mean) · slope.
struct Coefficients {
  float *scale, *offset, *slope;
};

/// Adds the chunks' sums of d and d · (x - mean) into dbeta and dgamma, and computes the coefficients.
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

/// The two passes over a batch. `gradient(i)` is the gradient through the relu at element i. The first pass calls
/// `keep(i, gradient)` for every element, and the second pass reads `kept(i)`.
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

void batch_norm_backward(const Tensor& dy, const kernels::BatchNormSaved& saved, bool relu, Tensor& dx, Tensor& dgamma,
                         Tensor& dbeta, Tensor& dresidual) {
  const Tensor d_out = dy.to(saved.x.format());
  visit_fast(saved.x.dtype(), "batch_norm_backward", [&]<class T>(T) {
    const T* d = d_out.data<T>();
    const T* y = relu ? saved.y.data<T>() : nullptr;
    const auto plain = [=](int64_t i) { return load(d + i); };
    // The gradient is loaded in any case, because a load under a condition slows the loop or does not vectorise.
    const auto through_relu = [=](int64_t i) {
      const float gradient = load(d + i);
      return load(y + i) <= 0 ? 0.0f : gradient;
    };
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

using kernels::LocalResponseNormOptions;

constexpr int64_t kStrip = 64;  // channels at a time
constexpr int64_t kReach = 32;  // largest window; a strip's buffer has room for its neighbours
constexpr int64_t kRow = kStrip + 2 * kReach;

/// The number of neighbouring channels in a window. If the size is even, there is one more below than above, as in
/// PyTorch.
struct Reach {
  explicit Reach(int64_t size) : below(size / 2), above(size - 1 - size / 2) {}
  int64_t below, above;
};

/// Calls body(pixel, begin, width, from, to) for strips [begin, begin + width) of the channels of every pixel. [from,
/// to) is the strip with `below` and `above` neighbours, cut to the channels of x.
template <class Body>
void for_each_strip(const Tensor& x, int64_t below, int64_t above, Body body) {
  const int64_t channels = x.size(1), pixels = x.numel() / std::max<int64_t>(1, channels);
  parallel_vectorized(
      pixels, std::max<int64_t>(1, kGrain / (8 * std::max<int64_t>(1, channels))), [=](int64_t first, int64_t last) {
        for (int64_t pixel = first; pixel < last; ++pixel)
          for (int64_t begin = 0; begin < channels; begin += kStrip) {
            const int64_t width = std::min(kStrip, channels - begin);
            body(pixel, begin, width, std::max<int64_t>(0, begin - below), std::min(channels, begin + width + above));
          }
      });
}

/// Adds to sum[c] the `size` values values[c], values[c + 1], ...
inline void window_sums(const float* values, int64_t size, int64_t width, float* sum) {
  for (int64_t k = 0; k < size; ++k) {
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) sum[c] += values[c + k];
  }
}

void local_response_norm(const Tensor& x, const LocalResponseNormOptions& options, Tensor& y, Tensor& denominator) {
  if (options.size > kReach) return kernels::local_response_norm.on(Target::reference)(x, options, y, denominator);
  if (x.format() != MemoryFormat::channels_last) {
    Tensor out = Tensor::empty(x.shape(), {x.dtype(), {}, MemoryFormat::channels_last}),
           under = Tensor::empty_like(out);
    local_response_norm(x.to(MemoryFormat::channels_last), options, out, under);
    y.copy_from(out);
    denominator.copy_from(under);
    return;
  }
  visit_fast(x.dtype(), "local_response_norm", [&]<class T>(T) {
    const T* in = x.data<T>();
    T *out = y.data<T>(), *under = denominator.data<T>();
    const int64_t channels = x.size(1), size = options.size;
    const Reach reach(size);
    const auto k = static_cast<float>(options.k), beta = static_cast<float>(options.beta),
               alpha = static_cast<float>(options.alpha / static_cast<double>(size));
    for_each_strip(x, reach.below, reach.above,
                   [=](int64_t pixel, int64_t begin, int64_t width, int64_t from, int64_t to) {
                     const T* row = in + pixel * channels;
                     float squares[kRow] = {}, sum[kStrip] = {};
                     const int64_t shift = reach.below - begin;
#pragma omp simd
                     for (int64_t c = from; c < to; ++c) squares[c + shift] = load(row + c) * load(row + c);
                     window_sums(squares, size, width, sum);
#pragma omp simd
                     for (int64_t c = 0; c < width; ++c) {
                       const float base = k + alpha * sum[c], factor = exponential(-beta * logarithm_of_any(base));
                       store(under + pixel * channels + begin + c, base);
                       store(out + pixel * channels + begin + c, load(row + begin + c) * factor);
                     }
                   });
  });
}

// With D the denominator: dx[c] = dy[c]·D[c]^-beta - 2·alpha·beta/size · x[c] · Σ dy[q]·x[q]·D[q]^(-beta-1). The sum is
// over all channels q whose window holds c.
void local_response_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& denominator,
                                  const LocalResponseNormOptions& options, Tensor& dx) {
  if (options.size > kReach)
    return kernels::local_response_norm_backward.on(Target::reference)(dy, x, denominator, options, dx);
  if (x.format() != MemoryFormat::channels_last) {
    constexpr auto kLast = MemoryFormat::channels_last;
    Tensor d_in = Tensor::empty(x.shape(), {x.dtype(), {}, kLast});
    local_response_norm_backward(dy.to(kLast), x.to(kLast), denominator.to(kLast), options, d_in);
    dx.copy_from(d_in);
    return;
  }
  visit_fast(x.dtype(), "local_response_norm_backward", [&]<class T>(T) {
    const T *in = x.data<T>(), *d_out = dy.data<T>(), *under = denominator.data<T>();
    T* d_in = dx.data<T>();
    const int64_t channels = x.size(1), size = options.size;
    const Reach reach(size);
    const auto beta = static_cast<float>(options.beta),
               factor = static_cast<float>(2 * options.alpha * options.beta / static_cast<double>(size));
    for_each_strip(
        x, reach.above, reach.below, [=](int64_t pixel, int64_t begin, int64_t width, int64_t from, int64_t to) {
          const int64_t row = pixel * channels, shift = reach.above - begin;
          float scaled[kRow] = {}, ratios[kRow] = {}, sum[kStrip] = {};  // dy·D^-beta; that times x/D
#pragma omp simd
          for (int64_t c = from; c < to; ++c) {
            const float base = load(under + row + c),
                        value = load(d_out + row + c) * exponential(-beta * logarithm_of_any(base));
            scaled[c + shift] = value;
            ratios[c + shift] = value * load(in + row + c) / base;
          }
          window_sums(ratios, size, width, sum);
#pragma omp simd
          for (int64_t c = 0; c < width; ++c)
            store(d_in + row + begin + c, scaled[c + reach.above] - factor * load(in + row + begin + c) * sum[c]);
        });
  });
}

}  // namespace

void provide_normalization() {
  kernels::batch_norm_training.provide(Target::cpu, batch_norm_training);
  kernels::batch_norm_inference.provide(Target::cpu, batch_norm_inference);
  kernels::batch_norm_backward.provide(Target::cpu, batch_norm_backward);
  kernels::local_response_norm.provide(Target::cpu, local_response_norm);
  kernels::local_response_norm_backward.provide(Target::cpu, local_response_norm_backward);
}

}  // namespace tern::cpu
