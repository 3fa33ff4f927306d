#include "tern/kernels/pooling.h"

#include "tern/core/error.h"

namespace tern::kernels {
namespace {

int64_t output_extent(int64_t input, int64_t window, int64_t stride, int64_t padding, bool ceil_mode) {
  const int64_t room = input + 2 * padding - window;
  if (room < 0) return 0;
  int64_t extent = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if ((extent - 1) * stride >= input + padding) --extent;  // the last window would begin in the padding
  return extent;
}

}  // namespace

Shape pool2d_output_shape(const Shape& x, const PoolGeometry& geometry) {
  const auto& [window, stride, padding, ceil_mode, count_include_pad] = geometry;
  check(x.rank() == 4, "pool2d: input ", x, ", expected 4 dimensions");
  check(window.h >= 1 && window.w >= 1 && stride.h >= 1 && stride.w >= 1, "pool2d: window ", window.h, "x", window.w,
        ", stride ", stride.h, "x", stride.w, "; both start at 1");
  check(0 <= padding.h && 2 * padding.h <= window.h && 0 <= padding.w && 2 * padding.w <= window.w, "pool2d: padding ",
        padding.h, "x", padding.w, " for window ", window.h, "x", window.w, ", expected 0 to half the window");
  const int64_t h = output_extent(x[2], window.h, stride.h, padding.h, ceil_mode);
  const int64_t w = output_extent(x[3], window.w, stride.w, padding.w, ceil_mode);
  check(h >= 1 && w >= 1, "pool2d: window ", window.h, "x", window.w, " does not fit into input ", x, " with padding ",
        padding.h, "x", padding.w);
  return {x[0], x[1], h, w};
}

}  // namespace tern::kernels
