#pragma once

#include "tern/kernels/cuda/images.h"
#include "tern/kernels/cuda/launch.h"
#include "tern/kernels/cuda/pool_axis.h"
#include "tern/kernels/cuda/vector.h"
#include "tern/kernels/pooling.h"

namespace tern::cuda {

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

/// Packs of channels where they are last, divide by the pack and are aligned; else single elements. Calls
/// run(constant<T>, constant<width>).
template <class Run>
void visit_packs(const char* operation, const Tensor& x, std::initializer_list<const void*> arrays, Run run) {
  visit_fast(x.dtype(), operation, [&]<class T>(T value) {
    constexpr int kWidth = kPackBytes / sizeof(T);
    const bool aligned = std::ranges::all_of(arrays, [](const void* array) { return is_aligned(array, kPackBytes); });
    if (x.format() == MemoryFormat::channels_last && x.size(1) % kWidth == 0 && aligned)
      run(value, std::integral_constant<int, kWidth>{});
    else
      run(value, std::integral_constant<int, 1>{});
  });
}

/// body(place) for every pack of `images`.
template <class Body>
__global__ void image_kernel(Body body, Images images) {
  for (int64_t i = global_thread(); i < images.count; i += global_threads()) body(images.place(i));
}
template <class Body>
void for_each_place(const char* operation, Device device, const Images& images, Body body) {
  launch(operation, device, grid_over(images.count), image_kernel<Body>, body, images);
}

}  // namespace tern::cuda
