#pragma once

#include <algorithm>

#include "tern/kernels/cpu/map.h"
#include "tern/kernels/pooling.h"

namespace tern::cpu {

/// Rows (or columns) [first, last) of something, and where the window that yields them begins, padding included.
struct Span {
  int64_t first, last, origin;
};

/// The window along one dimension of the output's element `index`, cut to the input's `extent`.
inline Span window_span(int64_t index, int64_t window, int64_t stride, int64_t padding, int64_t extent) {
  const int64_t origin = index * stride - padding;
  return {std::max<int64_t>(origin, 0), std::min(origin + window, extent), origin};
}

/// The output's elements [first, last) whose windows hold the input's element `index` along one dimension; `advance`
/// goes on to the next index.
class CoveringSpan {
 public:
  CoveringSpan(int64_t index, int64_t window, int64_t stride, int64_t padding, int64_t outputs)
      : place_(index + padding), window_(window), stride_(stride), outputs_(outputs) {
    first = place_ < window ? 0 : (place_ - window) / stride + 1;
    last = std::min(place_ / stride + 1, outputs);
  }
  void advance() {
    ++place_;
    if (first * stride_ + window_ <= place_) ++first;
    if (last < outputs_ && last * stride_ <= place_) ++last;
  }

  int64_t first, last;

 private:
  int64_t place_, window_, stride_, outputs_;
};

/// How a rank-4 tensor is walked: `planes` · h · w points of `width` adjacent elements each. Channels-last: a plane is
/// an image and a point all its channels; row-major: a plane is one channel of one image and a point one element.
struct PointGrid {
  int64_t planes, h, w, width;
};
inline PointGrid point_grid(const Tensor& x) {
  const bool last = x.format() == MemoryFormat::channels_last;
  return {last ? x.size(0) : x.size(0) * x.size(1), x.size(2), x.size(3), last ? x.size(1) : 1};
}

/// Calls body(plane, row) for every row of every plane, vectorised and over the threads.
template <class Body>
void for_each_grid_row(const PointGrid& grid, Body body) {
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, 4 * grid.w * grid.width));
  parallel_vectorized(grid.planes * grid.h, grain, [=](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) body(i / grid.h, i % grid.h);
  });
}

/// Channels that a pooling loop holds in registers or first-level cache at once.
inline constexpr int64_t kPoolStrip = 64;

}  // namespace tern::cpu
