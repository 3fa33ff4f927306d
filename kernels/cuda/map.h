#pragma once

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "tern/kernels/cuda/indexing.h"
#include "tern/kernels/cuda/launch.h"

namespace tern::cuda {

/// An array of one bit for each element of a tensor, in storage order: bit j of byte i is that of element 8·i + j.
struct Bits {
  const uint8_t* bytes;
};
template <int Width>
bool takes_packs(Bits) {
  return true;
}

/// The size of an element. Bits go with elements of any size, so theirs is `other`.
template <class X>
constexpr size_t element_bytes(size_t other) {
  if constexpr (std::is_same_v<X, Bits>)
    return other;
  else
    return sizeof(std::remove_pointer_t<X>);
}

/// Loads `Width` elements of an array from offset `at` on: adjacent ones, or one element repeated.
template <int Width, class T>
__device__ Pack<T, Width> load_run(const T* x, int64_t at, bool repeats) {
  if (!repeats) return load_pack<T, Width>(x + at);
  Pack<T, Width> pack;
  for (T& value : pack.values) value = x[at];
  return pack;
}
/// `Width` adjacent bits. They lie in one byte: 8 and `at` are multiples of `Width`.
template <int Width>
__device__ Pack<bool, Width> load_run(Bits x, int64_t at, bool) {
  const auto place = static_cast<uint64_t>(at);
  const unsigned bits = x.bytes[place / 8] >> place % 8;
  Pack<bool, Width> pack;
#pragma unroll
  for (int j = 0; j < Width; ++j) pack.values[j] = (bits >> j & 1) != 0;
  return pack;
}

/// `Width` results of `function`. at[1], at[2], ... are the offsets of its first arguments in the arrays x.
template <class T, int Width, class Function, class... X>
__device__ Pack<T, Width> map_pack(Function function, const Walk<1 + sizeof...(X)>& walk,
                                   const int64_t (&at)[1 + sizeof...(X)], X... x) {
  const auto run = [&]<class... Argument>(const Pack<Argument, Width>&... packs) {
    Pack<T, Width> result;
#pragma unroll
    for (int j = 0; j < Width; ++j) result.values[j] = static_cast<T>(function(wider_t<Argument>(packs.values[j])...));
    return result;
  };
  return [&]<size_t... Input>(std::index_sequence<Input...>) {
    return run(load_run<Width>(x, at[Input + 1], Width > 1 && walk.inner_step(Input + 1) == 0)...);
  }
  (std::index_sequence_for<X...>{});
}

/// y = function(x...), `Width` elements at a time. Array 0 of the walk is y.
template <int Width, class Function, class T, class... X>
__global__ void map_kernel(Function function, Walk<1 + sizeof...(X)> walk, T* y, X... x) {
  for (int64_t i = global_thread() * Width; i < walk.count; i += global_threads() * Width) {
    int64_t at[1 + sizeof...(X)] = {};
    walk.find(i, at);
    if (i + Width <= walk.count) {
      store_pack<T, Width>(y + at[0], map_pack<T, Width>(function, walk, at, x...));
      continue;
    }
#pragma unroll 1  // the last few elements would take registers from all others
    for (int64_t j = i; j < walk.count; ++j) {
      y[at[0]] = map_pack<T, 1>(function, walk, at, x...).values[0];
      for (int a = 0; a < int{1 + sizeof...(X)}; ++a) at[a] += walk.inner_step(a);
    }
  }
}

/// Runs `function` over the walk. Array 0 of the walk is y, the next ones are the x in order, each a pointer or Bits. A
/// thread moves 16 bytes of the narrowest elements at once, unless these are more than 32 of the widest.
template <class Function, class T, class... X>
void map_walk(const char* operation, Device device, const Walk<1 + sizeof...(X)>& walk, Function function, T* y,
              X... x) {
  constexpr size_t kNarrowest = std::min({sizeof(T), element_bytes<X>(sizeof(T))...}),
                   kWidest = std::max({sizeof(T), element_bytes<X>(sizeof(T))...});
  constexpr int kWidth = std::min(kPackBytes / kNarrowest, 2 * kPackBytes / kWidest), kLess = kPackBytes / kWidest;
  const auto fits = [&]<int Width>(std::integral_constant<int, Width>) {
    return walk.takes_packs(Width) && walk.inner_step(0) == 1 && takes_packs<Width>(y) &&
           (takes_packs<Width>(x) && ...);
  };
  const auto run = [&]<int Width>(std::integral_constant<int, Width>) {
    launch(operation, device, grid_over((walk.count + Width - 1) / Width), map_kernel<Width, Function, T, X...>,
           function, walk, y, x...);
  };
  if (fits(std::integral_constant<int, kWidth>{})) return run(std::integral_constant<int, kWidth>{});
  if constexpr (kLess != kWidth)
    if (fits(std::integral_constant<int, kLess>{})) return run(std::integral_constant<int, kLess>{});
  run(std::integral_constant<int, 1>{});
}

/// A walk through arrays of `count` neighbouring elements.
template <int Arrays>
Walk<Arrays> straight(const char* operation, int64_t count) {
  std::array<kernels::Strides, Arrays> steps{};
  for (auto& step : steps) step[0] = 1;
  return Walk<Arrays>(kernels::LoopNest<Arrays>(Shape{count}, {0}, steps), operation);
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
  /// An array, const T* or Bits, and the strides with which it is read.
  template <class X>
  struct Array {
    X data;
    kernels::Strides strides;
  };

  ChannelMap(const char* operation, const Shape& shape) : operation_(operation), shape_(shape) {}

  template <class T>
  Array<const T*> of(const Tensor& x) const {
    return {x.data<T>(), kernels::strides_in(x, shape_)};
  }
  /// f32 [C]
  Array<const float*> each(const Tensor& values) const {
    kernels::Strides strides{};
    strides[1] = shape_[1] == 1 ? 0 : 1;
    return {values.data<float>(), strides};
  }
  /// The bits of the elements of `like`
  Array<Bits> bits(const Tensor& bytes, const Tensor& like) const {
    return {{bytes.data<uint8_t>()}, kernels::strides_in(like, shape_)};
  }

  /// The way through y, in its storage order, and through the x. The shape is not empty.
  template <class... X>
  Walk<1 + sizeof...(X)> walk(const Tensor& y, const Array<X>&... x) const {
    return Walk<1 + sizeof...(X)>(kernels::LoopNest<1 + sizeof...(X)>(shape_, kernels::storage_order(y),
                                                                      {kernels::strides_in(y, shape_), x.strides...}),
                                  operation_);
  }
  /// y = function(x...) in f32.
  template <class T, class Function, class... X>
  void run(Function function, Tensor& y, const Array<X>&... x) const {
    if (shape_.numel() != 0) map_walk(operation_, y.device(), walk(y, x...), function, y.data<T>(), x.data...);
  }

 private:
  const char* operation_;
  Shape shape_;
};

}  // namespace tern::cuda
