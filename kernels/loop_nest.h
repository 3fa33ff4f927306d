#pragma once

#include <array>
#include <vector>

#include "tern/core/tensor.h"
#include "tern/kernels/layout.h"

namespace tern::kernels {

using Strides = std::array<int64_t, Shape::kMaxRank>;

/// Strides in elements for reading `tensor` broadcast to `shape`. The shapes are aligned at the last dimension. The
/// stride is 0 if the tensor repeats along a dimension.
inline Strides strides_in(const Tensor& tensor, const Shape& shape) {
  Strides own{}, result{};
  if (tensor.format() == MemoryFormat::channels_last) {
    const Strides4 s = strides4(tensor);
    own = {s.n, s.c, s.h, s.w};
  } else {
    for (int d = 0; d < tensor.rank(); ++d) own[d] = tensor.shape().numel_from(d + 1);
  }
  for (int d = 1; d <= tensor.rank(); ++d)
    if (tensor.size(-d) != 1) result[shape.rank() - d] = own[tensor.rank() - d];
  return result;
}

/// Strides for reading `tensor` with its dimensions in another order: dimension i is the tensor's dimension order[i].
inline Strides permuted_strides(const Tensor& tensor, const std::array<int, Shape::kMaxRank>& order) {
  const Strides own = strides_in(tensor, tensor.shape());
  Strides result{};
  for (int d = 0; d < tensor.rank(); ++d) result[d] = own[order[d]];
  return result;
}
/// Whether the order exchanges the last two of `rank` dimensions and leaves all others in place.
inline bool exchanges_last_two(const std::array<int, Shape::kMaxRank>& order, int rank) {
  for (int d = 0; d + 2 < rank; ++d)
    if (order[d] != d) return false;
  return rank >= 2 && order[rank - 1] == rank - 2;
}

/// Loops over one index space that move through several arrays at once. The loops go from the slowest dimension to the
/// fastest. Dimensions of extent 1 are dropped. Neighbouring dimensions become one loop if they are contiguous with
/// each other in every array.
template <int Arrays>
struct LoopNest {
  /// `order`: the dimensions of `shape` from slowest to fastest.
  LoopNest(const Shape& shape, const std::array<int, Shape::kMaxRank>& order,
           const std::array<Strides, Arrays>& strides) {
    for (int place = 0; place < shape.rank(); ++place) {
      const int d = order[place];
      if (shape[d] == 1) continue;
      bool joins = depth > 0;
      for (int a = 0; a < Arrays && joins; ++a) joins = step[a][depth - 1] == strides[a][d] * shape[d];
      if (!joins) extent[depth++] = 1;
      extent[depth - 1] *= shape[d];
      for (int a = 0; a < Arrays; ++a) step[a][depth - 1] = strides[a][d];
    }
    if (depth == 0) extent[depth++] = 1;
    for (int d = 0; d + 1 < depth; ++d) outer *= extent[d];
    inner = extent[depth - 1];
  }

  /// The offset in each array at the start of inner run `index`, which is in [0, outer).
  std::array<int64_t, Arrays> offsets(int64_t index) const {
    std::array<int64_t, Arrays> result{};
    for (int d = depth - 2; d >= 0; --d) {
      for (int a = 0; a < Arrays; ++a) result[a] += index % extent[d] * step[a][d];
      index /= extent[d];
    }
    return result;
  }
  /// Distance in elements between neighbours of an inner run.
  int64_t inner_step(int array) const { return step[array][depth - 1]; }

  int depth = 0;
  int64_t outer = 1, inner = 1;
  std::array<int64_t, Shape::kMaxRank> extent{};
  std::array<Strides, Arrays> step{};
};

/// The dimensions of `tensor` from slowest to fastest in its storage.
inline std::array<int, Shape::kMaxRank> storage_order(const Tensor& tensor) {
  if (tensor.format() == MemoryFormat::channels_last) return {0, 2, 3, 1};
  return kInOrder;
}

/// The nest over x, in its storage order, and over y, which has the rank of x, and extent 1 in the dimensions that are
/// summed.
inline LoopNest<2> sum_nest(const Tensor& x, const Tensor& y) {
  return {x.shape(), storage_order(x), {strides_in(x, x.shape()), strides_in(y, x.shape())}};
}
/// The summed dimensions of such a nest, or the kept ones, as a nest of their own, for the first `Arrays` arrays.
template <int Arrays>
LoopNest<Arrays> dimensions_of(const LoopNest<2>& nest, bool summed) {
  std::vector<int64_t> extents;
  std::array<Strides, Arrays> steps{};
  for (int d = 0; d < nest.depth; ++d) {
    if ((nest.step[1][d] == 0) != summed) continue;
    for (int a = 0; a < Arrays; ++a) steps[a][extents.size()] = nest.step[a][d];
    extents.push_back(nest.extent[d]);
  }
  return {Shape(extents), kInOrder, steps};
}

}  // namespace tern::kernels
