#include "tern/kernels/pooling.h"

#include <algorithm>
#include <cmath>

#include "tern/core/visit.h"
#include "tern/kernels/provide.h"
#include "tern/kernels/reference/indexing.h"

namespace tern::reference {
namespace {

/// The elements [h0, h1) × [w0, w1) of the input under one window, and the first row and column of the window, which
/// may lie in the padding.
struct Window {
  int64_t top, left;
  int64_t h0, h1, w0, w1;
  int64_t divisor;  ///< divisor of an average
};

/// Calls `visit(n, c, i, j, window)` for every window of x.
template <class Visit>
void for_each_window(const Shape& x, const Shape& y, const kernels::PoolGeometry& geometry, Visit visit) {
  const auto& [size, stride, padding, ceil_mode, count_include_pad] = geometry;
  check(y == kernels::pool2d_output_shape(x, geometry), "pool2d: output of shape ", y, " for ", x);
  for (int64_t n = 0; n < y[0]; ++n)
    for (int64_t c = 0; c < y[1]; ++c)
      for (int64_t i = 0; i < y[2]; ++i)
        for (int64_t j = 0; j < y[3]; ++j) {
          Window window;
          window.top = i * stride.h - padding.h;
          window.left = j * stride.w - padding.w;
          window.h0 = std::max<int64_t>(window.top, 0);
          window.w0 = std::max<int64_t>(window.left, 0);
          window.h1 = std::min(window.top + size.h, x[2]);
          window.w1 = std::min(window.left + size.w, x[3]);
          window.divisor = (window.h1 - window.h0) * (window.w1 - window.w0);
          if (count_include_pad)
            window.divisor = (std::min(window.top + size.h, x[2] + padding.h) - window.top) *
                             (std::min(window.left + size.w, x[3] + padding.w) - window.left);
          visit(n, c, i, j, window);
        }
}

void max_pool2d(const Tensor& x, const kernels::PoolGeometry& geometry, Tensor& y, Tensor& where) {
  visit_floating(x.dtype(), "max_pool2d", [&]<class T>(T) {
    const View4<T> in(x), out(y);
    const Strides4 places = strides4(where);
    for_each_window(x.shape(), y.shape(), geometry, [&](auto n, auto c, auto i, auto j, const Window& window) {
      int64_t best_h = window.h0, best_w = window.w0;
      for (int64_t h = window.h0; h < window.h1; ++h)
        for (int64_t w = window.w0; w < window.w1; ++w) {
          const wider_t<T> value = in(n, c, h, w), best = in(n, c, best_h, best_w);
          if (value > best || std::isnan(value)) {
            best_h = h;
            best_w = w;
          }
        }
      out(n, c, i, j) = in(n, c, best_h, best_w);
      kernels::visit_places(where, [&]<class P>(P* winner) {
        winner[n * places.n + c * places.c + i * places.h + j * places.w] =
            static_cast<P>((best_h - window.top) * geometry.window.w + best_w - window.left);
      });
    });
  });
}

void max_pool2d_backward(const Tensor& dy, const Tensor& where, const kernels::PoolGeometry& geometry, Tensor& dx) {
  visit_floating(dy.dtype(), "max_pool2d_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const View4<T> d_out(dy);
    const Tensor wide = where.to(DType::i64);
    const View4<int64_t> winner(wide);
    const Tensor sums = Tensor::zeros(dx.shape(), {.dtype = dtype_of<Wide>, .format = dx.format()});
    const View4<Wide> sum(sums);
    for_each_window(dx.shape(), dy.shape(), geometry, [&](auto n, auto c, auto i, auto j, const Window& window) {
      const int64_t place = winner(n, c, i, j);
      sum(n, c, window.top + place / geometry.window.w, window.left + place % geometry.window.w) += d_out(n, c, i, j);
    });
    dx.copy_from(sums);
  });
}

void average_pool2d(const Tensor& x, const kernels::PoolGeometry& geometry, Tensor& y) {
  visit_floating(x.dtype(), "average_pool2d", [&]<class T>(T) {
    const View4<T> in(x), out(y);
    for_each_window(x.shape(), y.shape(), geometry, [&](auto n, auto c, auto i, auto j, const Window& window) {
      wider_t<T> sum = 0;
      for (int64_t h = window.h0; h < window.h1; ++h)
        for (int64_t w = window.w0; w < window.w1; ++w) sum += in(n, c, h, w);
      out(n, c, i, j) = static_cast<T>(sum / static_cast<wider_t<T>>(window.divisor));
    });
  });
}

void average_pool2d_backward(const Tensor& dy, const kernels::PoolGeometry& geometry, Tensor& dx) {
  visit_floating(dy.dtype(), "average_pool2d_backward", [&]<class T>(T) {
    using Wide = wider_t<T>;
    const View4<T> d_out(dy);
    const Tensor sums = Tensor::zeros(dx.shape(), {.dtype = dtype_of<Wide>, .format = dx.format()});
    const View4<Wide> sum(sums);
    for_each_window(dx.shape(), dy.shape(), geometry, [&](auto n, auto c, auto i, auto j, const Window& window) {
      const Wide share = d_out(n, c, i, j) / static_cast<Wide>(window.divisor);
      for (int64_t h = window.h0; h < window.h1; ++h)
        for (int64_t w = window.w0; w < window.w1; ++w) sum(n, c, h, w) += share;
    });
    dx.copy_from(sums);
  });
}

}  // namespace

void provide_pooling() {
  kernels::max_pool2d.provide(Target::reference, max_pool2d);
  kernels::max_pool2d_backward.provide(Target::reference, max_pool2d_backward);
  kernels::average_pool2d.provide(Target::reference, average_pool2d);
  kernels::average_pool2d_backward.provide(Target::reference, average_pool2d_backward);
}

}  // namespace tern::reference
