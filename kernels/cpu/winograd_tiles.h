#pragma once

#include <algorithm>

#include "tern/core/tensor.h"
#include "tern/kernels/cpu/simd/kernels.h"

namespace tern::cpu {

inline constexpr int64_t kWinogradPoints = 36;

/// F(4 x 4, 3 x 3) or F(2 x 2, 5 x 5) for this processor, by the extent of the kernel.
inline const simd::WinogradTransforms& winograd_transforms(int64_t taps) {
  return taps == 3 ? simd::kernels().winograd_3x3 : simd::kernels().winograd_5x5;
}

/// The layout of 36 matrices [rows, columns], one per point, in scratch memory. Rows are padded for whole vectors. The
/// distances between rows and between matrices put neighbours into different sets of the cache.
class PointLayout {
 public:
  PointLayout(int64_t rows, int64_t columns)
      : row_(round_up(columns, 2 * simd::kernels().width) + kLine), point_(distance(rows * row_)) {}

  int64_t row() const { return row_; }      ///< floats from one row to the next
  int64_t point() const { return point_; }  ///< floats from one matrix to the next
  int64_t numel() const { return kWinogradPoints * point_; }

  static int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }
  /// The distance between matrices of `floats` floats.
  static int64_t distance(int64_t floats) { return round_up(floats, 2 * kLine) + kLine; }

 private:
  static constexpr int64_t kLine = 16;
  int64_t row_, point_;
};

/// Cuts channels-last images into tiles. Tile (i, j) is the square of `side` pixels that begins at pixel (step·i -
/// padding, step·j - padding). Gives the addresses of its pixels, and substitutes for pixels outside the image.
class TiledImages {
 public:
  static constexpr int kMaxPixels = 36;

  /// Cuts every image of f32 channels-last `images` into `tiles_h` x `tiles_w` tiles. `images` must outlive this
  /// object.
  TiledImages(const Tensor& images, int64_t tiles_h, int64_t tiles_w, int64_t side, int64_t step, int64_t padding);

  int64_t count() const { return images_.size(0) * tiles_in_image(); }

  /// Gives the pixels of tile `tile`, row by row, each readable in whole vectors. Pixels outside the image are zeros.
  void readable(int64_t tile, const float** pixels) const;
  /// As `readable`, for writing. `outside` [channels] receives the pixels outside the image.
  void writable(int64_t tile, float* outside, float** pixels) const;
  /// Begins to load the pixels of the tile kAhead tiles after `tile` that no tile before it has. Otherwise the
  /// transforms of few channels wait for memory most of the time.
  void prefetch(int64_t tile) const;

 private:
  static constexpr int64_t kAhead = 8;
  int64_t tiles_in_image() const { return tiles_h_ * tiles_w_; }
  template <class Pointer>
  void pixels_of(int64_t tile, Pointer outside, Pointer* pixels) const;

  const Tensor& images_;
  int64_t tiles_h_, tiles_w_, side_, step_, padding_;
  // Properties of `images_`, read once: with few channels, looking them up takes as long as transforming a tile.
  float* first_;
  int64_t channels_, height_, width_;
  Tensor zeros_;       ///< one pixel of zeros
  Tensor last_pixel_;  ///< a copy with padding: a vector read from the original would end beyond the tensor
};

inline TiledImages::TiledImages(const Tensor& images, int64_t tiles_h, int64_t tiles_w, int64_t side, int64_t step,
                                int64_t padding)
    : images_(images),
      tiles_h_(tiles_h),
      tiles_w_(tiles_w),
      side_(side),
      step_(step),
      padding_(padding),
      first_(images.data<float>()),
      channels_(images.size(1)),
      height_(images.size(2)),
      width_(images.size(3)) {
  const int64_t vector = simd::kernels().width;
  zeros_ = Tensor::zeros({channels_ + vector});
  if (channels_ % vector != 0) {
    last_pixel_ = Tensor::zeros({channels_ + vector});
    std::copy_n(first_ + images.numel() - channels_, channels_, last_pixel_.data<float>());
  }
}

inline void TiledImages::readable(int64_t tile, const float** pixels) const {
  pixels_of<const float*>(tile, zeros_.data<float>(), pixels);
  if (!last_pixel_.defined() || tile < count() - tiles_in_image()) return;
  const float* last = first_ + images_.numel() - channels_;
  std::replace(pixels, pixels + side_ * side_, last, static_cast<const float*>(last_pixel_.data<float>()));
}

inline void TiledImages::writable(int64_t tile, float* outside, float** pixels) const {
  pixels_of<float*>(tile, outside, pixels);
}

inline void TiledImages::prefetch(int64_t tile) const {
  constexpr int64_t kLine = 16;  // floats
  tile = std::min(tile + kAhead, count() - 1);
  const int64_t image = tile / tiles_in_image(), i = tile / tiles_w_ % tiles_h_, j = tile % tiles_w_;
  const int64_t bottom = std::min(height_, i * step_ - padding_ + side_);
  const int64_t right = std::min(width_, j * step_ - padding_ + side_), columns = std::min(right, step_);
  for (int64_t row = std::max<int64_t>(0, bottom - step_); row < bottom; ++row) {
    const float* line = first_ + ((image * height_ + row) * width_ + right - columns) * channels_;
    for (int64_t c = 0; c < columns * channels_; c += kLine) __builtin_prefetch(line + c);
  }
}

template <class Pointer>
void TiledImages::pixels_of(int64_t tile, Pointer outside, Pointer* pixels) const {
  const int64_t image = tile / tiles_in_image(), i = tile / tiles_w_ % tiles_h_, j = tile % tiles_w_;
  const int64_t top = i * step_ - padding_, left = j * step_ - padding_;
  const int64_t row_begin = std::max<int64_t>(0, top), row_end = std::min(height_, top + side_);
  const int64_t column_begin = std::max<int64_t>(0, left), column_end = std::min(width_, left + side_);
  if (row_end - row_begin < side_ || column_end - column_begin < side_) std::fill_n(pixels, side_ * side_, outside);
  for (int64_t row = row_begin; row < row_end; ++row) {
    Pointer pixel = first_ + ((image * height_ + row) * width_ + column_begin) * channels_;
    for (int64_t column = column_begin; column < column_end; ++column, pixel += channels_)
      pixels[(row - top) * side_ + column - left] = pixel;
  }
}

}  // namespace tern::cpu
