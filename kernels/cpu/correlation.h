#pragma once

#include <vector>

#include "tern/core/tensor.h"
#include "tern/kernels/convolution.h"

namespace tern::cpu {

/// One direction, H or W, of a correlation: output `first_output + i·output_step` sums the inputs `i·step + taps[t]`
/// times kernel entry `kernel[t]`, for i in [0, outputs) and every t. Inputs outside [0, inputs) are zero.
struct CorrelationAxis {
  int64_t inputs = 0, outputs = 0;
  int64_t step = 1;
  int64_t first_output = 0, output_step = 1;
  std::vector<int64_t> taps;  ///< ascending
  std::vector<int64_t> kernel;

  /// The inputs that some output reads: [begin(), end()), perhaps beyond the borders.
  int64_t begin() const { return taps.front(); }
  int64_t end() const { return (outputs - 1) * step + taps.back() + 1; }
  int64_t extent() const { return end() - begin(); }
  /// Whether the taps are neighbours.
  bool contiguous() const { return taps.back() - taps.front() + 1 == static_cast<int64_t>(taps.size()); }
};

/// The forward convolution along one axis.
CorrelationAxis forward_axis(int64_t inputs, int64_t outputs, int64_t window, int64_t stride, int64_t padding,
                             int64_t dilation);

/// The gradient of the data along one axis, as correlations of dy with stride 1: one for every residue of dx's index
/// by the stride. Residues that no tap meets are left out; their dx is zero.
std::vector<CorrelationAxis> backward_axes(int64_t inputs, int64_t outputs, int64_t window, int64_t stride,
                                           int64_t padding, int64_t dilation);

/// The part of channels-last images that a correlation reads, with zeros where that is beyond the borders: the images
/// themselves where it is not, else a copy of a few at a time in scratch memory of the caller's. For one thread.
class PaddedImages {
 public:
  /// x: f32 [N, C, H, W], channels-last. `scratch` has `scratch_floats()`; both outlive this.
  PaddedImages(const Tensor& x, const CorrelationAxis& h, const CorrelationAxis& w, float* scratch);

  /// What `block` needs of scratch memory; 0 where it copies nothing.
  int64_t scratch_floats() const { return padded_ ? block_ * image_stride_ : 0; }
  /// How many images to take at a time so that they stay in the cache.
  int64_t images_per_block() const { return block_; }
  /// Pixel (h.begin(), w.begin()) of image `first`; valid until the next call. At most images_per_block() follow.
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
