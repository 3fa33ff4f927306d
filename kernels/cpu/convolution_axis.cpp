#include "tern/kernels/cpu/convolution_axis.h"

#include <algorithm>

namespace tern::cpu {

CorrelationAxis forward_axis(int64_t inputs, int64_t outputs, int64_t window, int64_t stride, int64_t padding,
                             int64_t dilation) {
  CorrelationAxis axis{.inputs = inputs, .outputs = outputs, .step = stride, .taps = {}, .kernel = {}};
  for (int64_t k = 0; k < window; ++k) {
    axis.taps.push_back(k * dilation - padding);
    axis.kernel.push_back(k);
  }
  return axis;
}

std::vector<CorrelationAxis> backward_axes(int64_t inputs, int64_t outputs, int64_t window, int64_t stride,
                                           int64_t padding, int64_t dilation) {
  std::vector<CorrelationAxis> axes;
  for (int64_t first = 0; first < std::min(stride, inputs); ++first) {
    CorrelationAxis axis{.inputs = outputs,
                         .outputs = (inputs - first + stride - 1) / stride,
                         .first_output = first,
                         .output_step = stride,
                         .taps = {},
                         .kernel = {}};
    // dx[h] receives dy[(h + padding - k·dilation) / stride] wherever that divides.
    for (int64_t k = window - 1; k >= 0; --k) {
      const int64_t distance = first + padding - k * dilation;
      if (distance % stride != 0) continue;
      axis.taps.push_back(distance / stride);
      axis.kernel.push_back(k);
    }
    if (!axis.taps.empty()) axes.push_back(std::move(axis));
  }
  return axes;
}

}  // namespace tern::cpu
