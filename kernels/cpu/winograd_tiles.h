#pragma once

#include "tern/core/tensor.h"
#include "tern/kernels/cpu/simd/kernels.h"

namespace tern::cpu {

/// Cuts channels-last images into tiles: tile (i, j) is the square of `side` pixels that begins at pixel
/// (step·i - padding, step·j - padding). Gives the addresses of its pixels, and of stand-ins for those outside.
class TiledImages {
 public:
  static constexpr int kMaxPixels = 36;

  /// `tiles_h` x `tiles_w` tiles in every image of f32 channels-last `images`, which outlive this.
  TiledImages(const Tensor& images, int64_t tiles_h, int64_t tiles_w, int64_t side, int64_t step, int64_t padding);

  int64_t count() const { return images_.size(0) * tiles_in_image(); }

  /// Pixels of tile `tile`, row by row, each readable in whole vectors; zeros outside the image.
  void readable(int64_t tile, const float** pixels) const;
  /// The same for writing; `outside` [channels] takes what falls outside the image.
  void writable(int64_t tile, float* outside, float** pixels) const;

 private:
  int64_t tiles_in_image() const { return tiles_h_ * tiles_w_; }
  template <class Pointer>
  void pixels_of(int64_t tile, Pointer outside, Pointer* pixels) const;

  const Tensor& images_;
  int64_t tiles_h_, tiles_w_, side_, step_, padding_;
  // Of `images_`, fetched once: a tile of few channels takes no longer to transform than to look them up.
  float* first_;
  int64_t channels_, height_, width_;
  Tensor zeros_;       ///< one pixel of them
  Tensor last_pixel_;  ///< a copy with room behind it: vectors read from the original would end beyond the tensor
};

}  // namespace tern::cpu
