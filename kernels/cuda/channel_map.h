#pragma once

#include "tern/kernels/cuda/map.h"

namespace tern::cuda {

/// Elementwise arithmetic on activations of one shape [N, C] or [N, C, H, W] with a number for each channel beside
/// them.
class ChannelMap {
 public:
  /// An array and how it is read through the shape.
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

  /// y = function(x...) in f32
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
