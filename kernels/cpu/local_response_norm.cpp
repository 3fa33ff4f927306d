#include "tern/kernels/cpu/exponential.h"
#include "tern/kernels/cpu/map.h"
#include "tern/kernels/cpu/normalization.h"

namespace tern::cpu {
namespace {

using kernels::LocalResponseNormOptions;

constexpr int64_t kStrip = 64;  // channels at once
constexpr int64_t kReach = 32;  // farthest neighbour a strip's buffer has room for
constexpr int64_t kRow = kStrip + 2 * kReach;

/// Neighbouring channels that a window reaches: an even size reaches one further down than up, as in PyTorch.
struct Reach {
  explicit Reach(int64_t size) : below(size / 2), above(size - 1 - size / 2) {}
  int64_t below, above;
};

/// Calls body(pixel, begin, width, from, to) for strips [begin, begin + width) of every pixel's channels; [from, to) is
/// the strip with `below` and `above` neighbours, cut to the channels there are.
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

/// sum[c] = the `size` neighbours values[c], values[c + 1], ...
inline void window_sums(const float* values, int64_t size, int64_t width, float* sum) {
  for (int64_t k = 0; k < size; ++k) {
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) sum[c] += values[c + k];
  }
}

}  // namespace

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
    for_each_strip(
        x, reach.below, reach.above, [=](int64_t pixel, int64_t begin, int64_t width, int64_t from, int64_t to) {
          const T* row = in + pixel * channels;
          float squares[kRow] = {}, sum[kStrip] = {};
          const int64_t shift = reach.below - begin;
#pragma omp simd
          for (int64_t c = from; c < to; ++c) squares[c + shift] = load(row + c) * load(row + c);
          window_sums(squares, size, width, sum);
#pragma omp simd
          for (int64_t c = 0; c < width; ++c) {
            const float base = k + alpha * sum[c];
            store(under + pixel * channels + begin + c, base);
            store(out + pixel * channels + begin + c, load(row + begin + c) * exponential(-beta * logarithm(base)));
          }
        });
  });
}

// With D the denominator: dx[c] = dy[c]·D[c]^-beta - 2·alpha·beta/size · x[c] · Σ dy[q]·x[q]·D[q]^(-beta-1) over the q
// whose window holds c.
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
                        value = load(d_out + row + c) * exponential(-beta * logarithm(base));
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

}  // namespace tern::cpu
