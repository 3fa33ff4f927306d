#include <algorithm>

#include "tern/kernels/check.h"
#include "tern/kernels/cuda/normalization.h"
#include "tern/kernels/cuda/pool_windows.h"

namespace tern::cuda {
namespace {

/// The channels around each, as in PyTorch: an even size reaches one further down than up.
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

template <class T>
struct Normalize {
  Window window;
  Images images;
  const T* x;
  T *y, *denominator;
  __device__ void operator()(const Images::Place& at) const {
    const int64_t here = images.offset(at.n, at.c, at.h, at.w);
    float squares = 0;
    for (int64_t q = std::max(at.c - window.below, int64_t{0}); q <= std::min(at.c + window.above, window.channels - 1);
         ++q) {
      const auto value = float(x[here + (q - at.c) * window.step]);
      squares += value * value;
    }
    const float base = window.k + window.scale * squares;
    denominator[here] = static_cast<T>(base);
    y[here] = static_cast<T>(float(x[here]) * power(base, -window.beta));
  }
};

/// With D the denominator: dx[c] = dy[c]·D[c]^-beta - 2·alpha·beta/size · x[c] · Σ dy[q]·x[q]·D[q]^(-beta-1) over the q
/// whose window holds c.
template <class T>
struct NormalizeBackward {
  Window window;
  Images images;
  const T *dy, *x, *denominator;
  T* dx;
  __device__ void operator()(const Images::Place& at) const {
    const int64_t here = images.offset(at.n, at.c, at.h, at.w);
    float sum = 0;
    for (int64_t q = std::max(at.c - window.above, int64_t{0}); q <= std::min(at.c + window.below, window.channels - 1);
         ++q) {
      const int64_t there = here + (q - at.c) * window.step;
      sum += float(dy[there]) * float(x[there]) * power(float(denominator[there]), -window.beta - 1);
    }
    dx[here] = static_cast<T>(float(dy[here]) * power(float(denominator[here]), -window.beta) -
                              window.factor * float(x[here]) * sum);
  }
};

}  // namespace

void local_response_norm(const Tensor& x, const kernels::LocalResponseNormOptions& options, Tensor& y,
                         Tensor& denominator) {
  const char* operation = "local_response_norm";
  kernels::check_alike(operation, x, y);
  kernels::check_alike(operation, x, denominator);
  const Images images(operation, x, 1);
  visit_fast(x.dtype(), operation, [&]<class T>(T) {
    for_each_place(operation, x.device(), images,
                   Normalize<T>{Window(x, options), images, x.data<T>(), y.data<T>(), denominator.data<T>()});
  });
}

void local_response_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& denominator,
                                  const kernels::LocalResponseNormOptions& options, Tensor& dx) {
  const char* operation = "local_response_norm_backward";
  kernels::check_alike(operation, dy, x);
  kernels::check_alike(operation, dy, denominator);
  kernels::check_alike(operation, dy, dx);
  const Images images(operation, x, 1);
  visit_fast(x.dtype(), operation, [&]<class T>(T) {
    for_each_place(operation, x.device(), images,
                   NormalizeBackward<T>{Window(x, options), images, dy.data<T>(), x.data<T>(), denominator.data<T>(),
                                        dx.data<T>()});
  });
}

}  // namespace tern::cuda
