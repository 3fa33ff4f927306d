#include "tern/kernels/cpu/correlation.h"

#include <algorithm>
#include <cstring>

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
    // dx[h] receives dy[(h + padding - k·dilation) / stride] for every k for which the division leaves no remainder.
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

namespace {

constexpr int64_t kBlockFloats = 1 << 17;

bool inside(const CorrelationAxis& axis) { return axis.begin() >= 0 && axis.end() <= axis.inputs; }

}  // namespace

PaddedImages::PaddedImages(const Tensor& x, const CorrelationAxis& h, const CorrelationAxis& w, float* scratch)
    : x_(x.data<float>()), h_(h), w_(w), channels_(x.size(1)), padded_(!inside(h) || !inside(w)), scratch_(scratch) {
  row_stride_ = (padded_ ? w.extent() : w.inputs) * channels_;
  image_stride_ = row_stride_ * (padded_ ? h.extent() : h.inputs);
  block_ = std::clamp<int64_t>(kBlockFloats / std::max<int64_t>(image_stride_, 1), 1, x.size(0));
}

const float* PaddedImages::block(int64_t first, int64_t count) {
  const int64_t source_stride = h_.inputs * w_.inputs * channels_;
  if (!padded_) {
    return x_ + first * source_stride + (h_.begin() * w_.inputs + w_.begin()) * channels_;
  }
  for (int64_t i = 0; i < count; ++i) {
    copy_image(x_ + (first + i) * source_stride, scratch_ + i * image_stride_);
  }
  return scratch_;
}

void PaddedImages::copy_image(const float* image, float* target) const {
  const int64_t left = std::clamp<int64_t>(-w_.begin(), 0, w_.extent());
  const int64_t right = std::max(std::min(w_.end(), w_.inputs) - w_.begin(), left);
  for (int64_t row = h_.begin(); row < h_.end(); ++row, target += row_stride_) {
    if (row < 0 || row >= h_.inputs) {
      std::fill_n(target, row_stride_, 0.0f);
      continue;
    }
    std::fill_n(target, left * channels_, 0.0f);
    std::memcpy(target + left * channels_, image + (row * w_.inputs + w_.begin() + left) * channels_,
                static_cast<size_t>((right - left) * channels_) * sizeof(float));
    std::fill(target + right * channels_, target + row_stride_, 0.0f);
  }
}

}  // namespace tern::cpu
