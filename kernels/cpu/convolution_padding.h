#pragma once

#include "tern/core/tensor.h"
#include "tern/kernels/cpu/convolution_axis.h"

namespace tern::cpu {

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
