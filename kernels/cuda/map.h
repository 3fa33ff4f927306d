#pragma once

#include <algorithm>
#include <utility>

#include "tern/kernels/cuda/indexing.h"
#include "tern/kernels/cuda/launch.h"

namespace tern::cuda {

/// Loads `Width` elements of an array from offset `at` on: adjacent ones, or one element repeated.
template <int Width, class T>
__device__ Pack<T, Width> load_run(const T* x, int64_t at, bool repeats) {
  if (!repeats) return load_pack<T, Width>(x + at);
  Pack<T, Width> pack;
  for (T& value : pack.values) value = x[at];
  return pack;
}

/// y = function(x...), `Width` elements at a time. Array 0 of the walk is y.
template <int Width, class Function, class T, class... X, size_t... Input>
__device__ void map_elements(std::index_sequence<Input...>, Function function, const Walk<1 + sizeof...(X)>& walk, T* y,
                             const X*... x) {
  for (int64_t i = global_thread() * Width; i < walk.count; i += global_threads() * Width) {
    int64_t at[1 + sizeof...(X)] = {};
    walk.find(i, at);
    if (i + Width <= walk.count) {
      const auto run = [&](const Pack<X, Width>&... packs) {
        Pack<T, Width> result;
#pragma unroll
        for (int j = 0; j < Width; ++j) result.values[j] = static_cast<T>(function(wider_t<X>(packs.values[j])...));
        return result;
      };
      store_pack<T, Width>(y + at[0],
                           run(load_run<Width>(x, at[Input + 1], Width > 1 && walk.inner_step(Input + 1) == 0)...));
    } else {
      for (int64_t j = 0; i + j < walk.count; ++j)
        y[at[0] + j] = static_cast<T>(function(wider_t<X>(x[at[Input + 1] + j * walk.inner_step(Input + 1)])...));
    }
  }
}
template <int Width, class Function, class T, class... X>
__global__ void map_kernel(Function function, Walk<1 + sizeof...(X)> walk, T* y, const X*... x) {
  map_elements<Width>(std::index_sequence_for<X...>{}, function, walk, y, x...);
}

/// Runs `function` over the walk. Array 0 of the walk is y, the next ones are the x in order.
template <class Function, class T, class... X>
void map_walk(const char* operation, Device device, const Walk<1 + sizeof...(X)>& walk, Function function, T* y,
              const X*... x) {
  constexpr int kWidth = kPackBytes / static_cast<int>(std::max({sizeof(T), sizeof(X)...}));
  bool packs = walk.takes_packs(kWidth) && is_aligned(y, sizeof(T) * kWidth) && walk.inner_step(0) == 1;
  ((packs = packs && is_aligned(x, sizeof(X) * kWidth)), ...);
  if (packs)
    launch(operation, device, grid_over((walk.count + kWidth - 1) / kWidth), map_kernel<kWidth, Function, T, X...>,
           function, walk, y, x...);
  else
    launch(operation, device, grid_over(walk.count), map_kernel<1, Function, T, X...>, function, walk, y, x...);
}

/// y = function(x...) elementwise in f32. Inputs repeat to the shape of y. The formats may differ.
template <class Function, class... Inputs>
void map(const char* operation, Function function, Tensor& y, const Inputs&... x) {
  if (y.numel() == 0) return;
  const kernels::LoopNest<1 + sizeof...(Inputs)> nest(
      y.shape(), kernels::storage_order(y), {kernels::strides_in(y, y.shape()), kernels::strides_in(x, y.shape())...});
  const Walk<1 + sizeof...(Inputs)> walk(nest, operation);
  visit_fast(y.dtype(), operation, [&]<class T>(T) {
    map_walk(operation, y.device(), walk, function, y.template data<T>(),
             static_cast<const T*>(x.template data<T>())...);
  });
}

/// Calls run(T{}, constant<width>). The width is a pack of channels if channels are last, their number is a multiple of
/// the pack and the arrays are aligned. Otherwise it is 1.
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

/// Calls body(place) for every pack of `images`.
template <class Body>
__global__ void image_kernel(Body body, Images images) {
  for (int64_t i = global_thread(); i < images.count; i += global_threads()) body(images.place(i));
}
template <class Body>
void for_each_place(const char* operation, Device device, const Images& images, Body body) {
  launch(operation, device, grid_over(images.count), image_kernel<Body>, body, images);
}

/// Elementwise arithmetic on activations of one shape, [N, C] or [N, C, H, W], together with one number per channel.
class ChannelMap {
 public:
  /// An array and the strides with which it is read.
  template <class T>
  struct Array {
    T* data;
    kernels::Strides strides;
  };

  ChannelMap(const char* operation, const Shape& shape) : operation_(operation), shape_(shape) {}

  template <class T>
  Array<T> of(const Tensor& x) const {
    return {x.data<T>(), kernels::strides_in(x, shape_)};
  }
  /// f32 [C]
  Array<float> each(const Tensor& values) const {
    kernels::Strides strides{};
    strides[1] = shape_[1] == 1 ? 0 : 1;
    return {values.data<float>(), strides};
  }

  /// y = function(x...) in f32.
  template <class Function, class T, class... X>
  void run(Function function, const Tensor& like, Array<T> y, Array<X>... x) const {
    if (shape_.numel() == 0) return;
    const kernels::LoopNest<1 + sizeof...(X)> nest(shape_, kernels::storage_order(like), {y.strides, x.strides...});
    map_walk(operation_, like.device(), Walk<1 + sizeof...(X)>(nest, operation_), function, y.data,
             static_cast<const X*>(x.data)...);
  }

 private:
  const char* operation_;
  Shape shape_;
};

}  // namespace tern::cuda
