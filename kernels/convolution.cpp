#include "tern/kernels/convolution.h"

#include "tern/core/error.h"

namespace tern::kernels {
namespace {

int64_t output_extent(int64_t input, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  const int64_t room = input + 2 * padding - (dilation * (kernel - 1) + 1);
  return room < 0 ? 0 : room / stride + 1;
}

}  // namespace

Shape conv2d_output_shape(const Shape& x, const Shape& w, const ConvGeometry& geometry) {
  const auto& [stride, padding, dilation, groups] = geometry;
  check(x.rank() == 4 && w.rank() == 4, "conv2d: input ", x, " and weight ", w, ", expected 4 dimensions each");
  check(x[1] >= 1 && w[0] >= 1, "conv2d: input ", x, " and weight ", w,
        ", expected at least one channel on both sides");
  check(stride.h >= 1 && stride.w >= 1 && dilation.h >= 1 && dilation.w >= 1 && padding.h >= 0 && padding.w >= 0,
        "conv2d: stride ", stride.h, "x", stride.w, ", padding ", padding.h, "x", padding.w, ", dilation ", dilation.h,
        "x", dilation.w, "; strides and dilations start at 1, padding at 0");
  check(groups >= 1 && w[0] % groups == 0, "conv2d: weight ", w, " in ", groups,
        " groups; the output channels do not divide by them");
  check(x[1] == w[1] * groups, "conv2d: input ", x, " has ", x[1], " channels, weight ", w, " in ", groups,
        groups == 1 ? " group" : " groups", " expects ", w[1] * groups);
  const int64_t h = output_extent(x[2], w[2], stride.h, padding.h, dilation.h);
  const int64_t width = output_extent(x[3], w[3], stride.w, padding.w, dilation.w);
  check(w[2] >= 1 && w[3] >= 1 && h >= 1 && width >= 1, "conv2d: weight ", w, " with dilation ", dilation.h, "x",
        dilation.w, " does not fit into input ", x, " with padding ", padding.h, "x", padding.w);
  return {x[0], w[0], h, width};
}

}  // namespace tern::kernels
