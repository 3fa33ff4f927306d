#include "tern/kernels/cuda/map.h"
#include "tern/kernels/pooling.h"
#include "tern/kernels/provide.h"
#include "tern/kernels/reduction.h"

namespace tern::cuda {
namespace {

struct PoolAxes {
  PoolAxes(const Shape& x, const Shape& y, const kernels::PoolGeometry& g)
      : h(axis(g.window.h, g.stride.h, g.padding.h, x[2], y[2])),
        w(axis(g.window.w, g.stride.w, g.padding.w, x[3], y[3])),
        counted(g.count_include_pad) {}
  static PoolAxis axis(int64_t window, int64_t stride, int64_t padding, int64_t input, int64_t output) {
    return {static_cast<int32_t>(window), static_cast<int32_t>(stride), static_cast<int32_t>(padding),
            static_cast<int32_t>(input), static_cast<int32_t>(output)};
  }
  PoolAxis h, w;
  bool counted;
};

template <class T, int Width>
struct AveragePool {
  PoolAxes axes;
  Images in, out;
  const T* x;
  T* y;
  __device__ void operator()(const Images::Place& at) const {
    const auto i = static_cast<int32_t>(at.h), j = static_cast<int32_t>(at.w);
    float sums[Width] = {};
    for (int32_t h = axes.h.begin(i); h < axes.h.end(i); ++h)
      for (int32_t w = axes.w.begin(j); w < axes.w.end(j); ++w) {
        const auto here = load_pack<T, Width>(x + in.offset(at.n, at.c, h, w));
        for (int k = 0; k < Width; ++k) sums[k] += float(here.values[k]);
      }
    const auto divisor = static_cast<float>(axes.h.divisor(i, axes.counted) * axes.w.divisor(j, axes.counted));
    for (float& sum : sums) sum /= divisor;
    store_pack(y + out.offset(at.n, at.c, at.h, at.w), sums);
  }
};

template <class T, int Width>
struct AveragePoolBackward {
  PoolAxes axes;
  Images in, out;
  const T* dy;
  T* dx;
  __device__ void operator()(const Images::Place& at) const {
    const auto h = static_cast<int32_t>(at.h), w = static_cast<int32_t>(at.w);
    float sums[Width] = {};
    for (int32_t i = axes.h.first_window(h); i <= axes.h.last_window(h); ++i)
      for (int32_t j = axes.w.first_window(w); j <= axes.w.last_window(w); ++j) {
        const auto gradient = load_pack<T, Width>(dy + out.offset(at.n, at.c, i, j));
        const auto divisor = static_cast<float>(axes.h.divisor(i, axes.counted) * axes.w.divisor(j, axes.counted));
        for (int k = 0; k < Width; ++k) sums[k] += float(gradient.values[k]) / divisor;
      }
    store_pack(dx + in.offset(at.n, at.c, at.h, at.w), sums);
  }
};

void average_pool2d(const Tensor& x, const kernels::PoolGeometry& geometry, Tensor& y) {
  const char* operation = "average_pool2d";
  check(y.shape() == kernels::pool2d_output_shape(x.shape(), geometry), operation, ": output of shape ", y.shape(),
        " for ", x.shape());
  const kernels::Extent2 image{x.size(2), x.size(3)};
  if (geometry.window == image && geometry.padding == kernels::Extent2(0)) {
    // A thread for each pack of channels would read whole images, and be one of few.
    return kernels::sum.on(Target::cuda)(x, 1 / static_cast<double>(image.h * image.w), y);
  }
  visit_packs(
      operation, x, {x.raw_data(), y.raw_data()}, [&]<class T, int Width>(T, std::integral_constant<int, Width>) {
        const Images in(operation, x, Width), out(operation, y, Width);
        for_each_place(operation, x.device(), out,
                       AveragePool<T, Width>{{x.shape(), y.shape(), geometry}, in, out, x.data<T>(), y.data<T>()});
      });
}

void average_pool2d_backward(const Tensor& dy, const kernels::PoolGeometry& geometry, Tensor& dx) {
  const char* operation = "average_pool2d_backward";
  visit_packs(
      operation, dx, {dy.raw_data(), dx.raw_data()}, [&]<class T, int Width>(T, std::integral_constant<int, Width>) {
        const Images in(operation, dx, Width), out(operation, dy, Width);
        for_each_place(
            operation, dx.device(), in,
            AveragePoolBackward<T, Width>{{dx.shape(), dy.shape(), geometry}, in, out, dy.data<T>(), dx.data<T>()});
      });
}

template <class T, class P, int Width>
struct MaxPool {
  PoolAxes axes;
  Images in, out;
  const T* x;
  T* y;
  P* where;
  __device__ void operator()(const Images::Place& at) const {
    const auto i = static_cast<int32_t>(at.h), j = static_cast<int32_t>(at.w);
    Pack<T, Width> best;
    Pack<P, Width> winner;
    bool first = true;
    for (int32_t h = axes.h.begin(i); h < axes.h.end(i); ++h)
      for (int32_t w = axes.w.begin(j); w < axes.w.end(j); ++w) {
        const auto here = load_pack<T, Width>(x + in.offset(at.n, at.c, h, w));
        const auto place = static_cast<P>((h - axes.h.first(i)) * axes.w.window + w - axes.w.first(j));
#pragma unroll
        for (int k = 0; k < Width; ++k) {
          const float value = here.values[k], most = best.values[k];
          if (first || value > most || value != value) {  // NaN wins
            best.values[k] = here.values[k];
            winner.values[k] = place;
          }
        }
        first = false;
      }
    const int64_t to = out.offset(at.n, at.c, at.h, at.w);
    store_pack(y + to, best);
    store_pack(where + to, winner);
  }
};

/// Each element of x gathers the gradients of the windows in which it is the maximum.
template <class T, class P, int Width>
struct MaxPoolBackward {
  PoolAxes axes;
  Images in, out;
  const T* dy;
  const P* where;
  T* dx;
  __device__ void operator()(const Images::Place& at) const {
    const auto h = static_cast<int32_t>(at.h), w = static_cast<int32_t>(at.w);
    float sums[Width] = {};
    for (int32_t i = axes.h.first_window(h); i <= axes.h.last_window(h); ++i)
      for (int32_t j = axes.w.first_window(w); j <= axes.w.last_window(w); ++j) {
        const int64_t from = out.offset(at.n, at.c, i, j);
        const auto winner = load_pack<P, Width>(where + from);
        const auto gradient = load_pack<T, Width>(dy + from);
        const int32_t place = (h - axes.h.first(i)) * axes.w.window + w - axes.w.first(j);
#pragma unroll
        for (int k = 0; k < Width; ++k) sums[k] += winner.values[k] == place ? float(gradient.values[k]) : 0;
      }
    store_pack(dx + in.offset(at.n, at.c, at.h, at.w), sums);
  }
};

void max_pool2d(const Tensor& x, const kernels::PoolGeometry& geometry, Tensor& y, Tensor& where) {
  check(y.shape() == kernels::pool2d_output_shape(x.shape(), geometry), "max_pool2d: output of shape ", y.shape(),
        " for ", x.shape());
  visit_packs("max_pool2d", x, {x.raw_data(), y.raw_data(), where.raw_data()},
              [&]<class T, int Width>(T, std::integral_constant<int, Width>) {
                const Images in("max_pool2d", x, Width), out("max_pool2d", y, Width);
                kernels::visit_places(where, [&]<class P>(P* places) {
                  for_each_place("max_pool2d", x.device(), out,
                                 MaxPool<T, P, Width>{
                                     {x.shape(), y.shape(), geometry}, in, out, x.data<T>(), y.data<T>(), places});
                });
              });
}

void max_pool2d_backward(const Tensor& dy, const Tensor& where, const kernels::PoolGeometry& geometry, Tensor& dx) {
  const char* operation = "max_pool2d_backward";
  visit_packs(operation, dx, {dy.raw_data(), where.raw_data(), dx.raw_data()},
              [&]<class T, int Width>(T, std::integral_constant<int, Width>) {
                const Images in(operation, dx, Width), out(operation, dy, Width);
                kernels::visit_places(where, [&]<class P>(P* places) {
                  for_each_place(operation, dx.device(), in,
                                 MaxPoolBackward<T, P, Width>{
                                     {dx.shape(), dy.shape(), geometry}, in, out, dy.data<T>(), places, dx.data<T>()});
                });
              });
}

}  // namespace

void provide_pooling() {
  kernels::max_pool2d.provide(Target::cuda, max_pool2d);
  kernels::max_pool2d_backward.provide(Target::cuda, max_pool2d_backward);
  kernels::average_pool2d.provide(Target::cuda, average_pool2d);
  kernels::average_pool2d_backward.provide(Target::cuda, average_pool2d_backward);
}

}  // namespace tern::cuda
