#pragma once

#include <vector>

#include "tern/core/tensor.h"
#include "tern/kernels/convolution.h"

namespace tern::cpu {

/// One direction, H or W, of a correlation. Output `first_output + i·output_step` is the sum over all t of input
/// `i·step + taps[t]` times kernel entry `kernel[t]`, for i in [0, outputs). Inputs outside [0, inputs) are zero.
struct CorrelationAxis {
  int64_t inputs = 0, outputs = 0;
  int64_t step = 1;
  int64_t first_output = 0, output_step = 1;
  std::vector<int64_t> taps;  ///< in ascending order
  std::vector<int64_t> kernel;

  /// The range of inputs that the outputs read: [begin(), end()). It may extend beyond the borders.
  int64_t begin() const { return taps.front(); }
  int64_t end() const { return (outputs - 1) * step + taps.back() + 1; }
  int64_t extent() const { return end() - begin(); }
  /// Whether the taps are neighbours.
  bool contiguous() const { return taps.back() - taps.front() + 1 == static_cast<int64_t>(taps.size()); }
};

/// The forward convolution along one axis.
CorrelationAxis forward_axis(int64_t inputs, int64_t outputs, int64_t window, int64_t stride, int64_t padding,
                             int64_t dilation);

/// The gradient of the data along one axis, as correlations of dy with stride 1. There is one for every residue of dx's
/// index modulo the stride. Residues without a tap are left out; their dx is zero.
std::vector<CorrelationAxis> backward_axes(int64_t inputs, int64_t outputs, int64_t window, int64_t stride,
                                           int64_t padding, int64_t dilation);

/// The part of channels-last images that a correlation reads, with zeros beyond the borders. If nothing lies beyond the
/// borders, it gives the images themselves. Otherwise it copies a few images at a time to the caller's scratch memory.
/// Used by one thread.
class PaddedImages {
 public:
  /// x: f32 [N, C, H, W], channels-last. `scratch` holds `scratch_floats()` floats. x, h, w and `scratch` must outlive
  /// this object.
  PaddedImages(const Tensor& x, const CorrelationAxis& h, const CorrelationAxis& w, float* scratch);

  /// Number of floats of scratch memory that `block` needs; 0 if it copies nothing.
  int64_t scratch_floats() const { return padded_ ? block_ * image_stride_ : 0; }
  /// The number of images to process at a time so that what is read of them stays in the cache.
  int64_t images_per_block() const { return block_; }
  /// Returns pixel (h.begin(), w.begin()) of image `first`, valid until the next call. `count` is at most
  /// images_per_block().
  const float* block(int64_t first, int64_t count);

  int64_t image_stride() const { return image_stride_; }
  int64_t row_stride() const { return row_stride_; }

 private:
  void copy_image(const float* image, float* target) const;

  const float* x_;
  const CorrelationAxis &h_, &w_;
  int64_t channels_;
  int64_t image_stride_, row_stride_;
  int64_t block_;
  bool padded_;
  float* scratch_;
};

}  // namespace tern::cpu
