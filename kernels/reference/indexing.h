#pragma once

#include <array>
#include <utility>

#include "tern/core/tensor.h"

namespace tern::reference {

/// Distance in elements between neighbours along each dimension of a tensor, in its format.
inline std::array<int64_t, Shape::kMaxRank> strides_of(const Tensor& tensor) {
  std::array<int64_t, Shape::kMaxRank> strides{};
  if (tensor.format() == MemoryFormat::channels_last) {
    const Strides4 s = strides4(tensor);
    strides = {s.n, s.c, s.h, s.w};
  } else {
    for (int d = 0; d < tensor.rank(); ++d) strides[d] = tensor.shape().numel_from(d + 1);
  }
  return strides;
}

/// Maps elements to offsets in a tensor's storage. `position(e)` is the offset of element e, counted in row-major order
/// of the shape through which the tensor is read. A pure value.
class Position {
 public:
  explicit Position(const Tensor& tensor) : shape_(tensor.shape()), strides_(strides_of(tensor)) {}

  /// The tensor repeated to `shape` by broadcasting. A repeated dimension has stride 0.
  static Position broadcast(const Tensor& tensor, const Shape& shape) {
    const Position own(tensor);
    Position result(shape);
    for (int d = 1; d <= tensor.rank(); ++d)
      if (tensor.size(-d) != 1) result.strides_[shape.rank() - d] = own.strides_[tensor.rank() - d];
    return result;
  }
  /// The block of `shape` that begins at `offsets` within the tensor.
  static Position block(const Tensor& tensor, const std::array<int64_t, Shape::kMaxRank>& offsets, const Shape& shape) {
    Position result(shape);
    result.strides_ = strides_of(tensor);
    for (int d = 0; d < shape.rank(); ++d) result.origin_ += offsets[d] * result.strides_[d];
    return result;
  }
  /// The tensor with its dimensions in another order, seen as `shape`.
  static Position permuted(const Tensor& tensor, const std::array<int, Shape::kMaxRank>& order, const Shape& shape) {
    Position result(shape);
    const auto strides = strides_of(tensor);
    for (int d = 0; d < shape.rank(); ++d) result.strides_[d] = strides[order[d]];
    return result;
  }

  int64_t operator()(int64_t element) const {
    int64_t offset = origin_;
    for (int d = shape_.rank() - 1; d >= 0; --d) {
      offset += element % shape_[d] * strides_[d];
      element /= shape_[d];
    }
    return offset;
  }

 private:
  explicit Position(const Shape& shape) : shape_(shape) {}

  Shape shape_;
  std::array<int64_t, Shape::kMaxRank> strides_{};
  int64_t origin_ = 0;
};

/// The elements of a rank-4 tensor by n, c, h, w, in either format.
template <class T>
struct View4 {
  explicit View4(const Tensor& tensor) : data(tensor.data<T>()), strides(strides4(tensor)) {}
  T& operator()(int64_t n, int64_t c, int64_t h, int64_t w) const {
    return data[n * strides.n + c * strides.c + h * strides.h + w * strides.w];
  }

  T* data;
  Strides4 strides;
};

}  // namespace tern::reference
