#include "tern/kernels/cuda/pool_windows.h"
#include "tern/kernels/cuda/pooling.h"

namespace tern::cuda {
namespace {

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

}  // namespace

void average_pool2d(const Tensor& x, const kernels::PoolGeometry& geometry, Tensor& y) {
  const char* operation = "average_pool2d";
  check(y.shape() == kernels::pool2d_output_shape(x.shape(), geometry), operation, ": output of shape ", y.shape(),
        " for ", x.shape());
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

}  // namespace tern::cuda
