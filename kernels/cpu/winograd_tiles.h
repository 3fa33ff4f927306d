#pragma once

#include <algorithm>

#include "tern/core/tensor.h"
#include "tern/kernels/cpu/simd/kernels.h"

namespace tern::cpu {

/// F(4 x 4, 3 x 3) or F(4 x 4, 5 x 5) for this processor, by the extent of the kernel.
inline const simd::WinogradTransforms& winograd_transforms(int64_t taps) {
  return taps == 3 ? simd::kernels().winograd_3x3 : simd::kernels().winograd_5x5;
}

/// The layout of matrices [rows, columns], one per point, in scratch memory. Rows are padded for whole vectors. The
/// distances between rows and between matrices put neighbours into different sets of the cache.
class PointLayout {
 public:
  PointLayout(int64_t points, int64_t rows, int64_t columns)
      : row_(round_up(columns, 2 * simd::kernels().width) + kLine),
        point_(distance(rows * row_)),
        numel_(points * point_) {}

  int64_t row() const { return row_; }      ///< floats from one row to the next
  int64_t point() const { return point_; }  ///< floats from one matrix to the next
  int64_t numel() const { return numel_; }

  static int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }
  /// The distance between matrices of `floats` floats.
  static int64_t distance(int64_t floats) { return round_up(floats, 2 * kLine) + kLine; }

 private:
  static constexpr int64_t kLine = 16;
  int64_t row_, point_, numel_;
};

/// The place of a tile: its image, and its row and column in the grid of that image's tiles. May lie after the last
/// image.
struct TilePlace {
  int64_t image, row, column;
};

/// The tiles of all images, one image after another, row by row.
class TileGrid {
 public:
  /// The tiles of `images` if they are `step` pixels apart.
  TileGrid(const Tensor& images, int64_t step)
      : images_(images.size(0)),
        rows_((images.size(2) + step - 1) / step),
        columns_((images.size(3) + step - 1) / step) {}

  int64_t count() const { return images_ * rows_ * columns_; }
  /// Calls body(place, ahead) for the tiles [begin, end). `ahead` is the place of the tile to prefetch. Divides only
  /// once, because a division for each tile would cost a good part of the time of a tile with few channels.
  template <class Body>
  void visit(int64_t begin, int64_t end, Body body) const {
    constexpr int64_t kAhead = 8;  // tiles
    TilePlace at = place(begin), ahead = place(begin + kAhead);
    for (int64_t tile = begin; tile < end; ++tile, advance(at), advance(ahead)) body(at, ahead);
  }

 private:
  TilePlace place(int64_t tile) const { return {tile / (rows_ * columns_), tile / columns_ % rows_, tile % columns_}; }
  void advance(TilePlace& at) const {
    if (++at.column < columns_) return;
    at.column = 0;
    if (++at.row < rows_) return;
    at.row = 0;
    ++at.image;
  }

  int64_t images_, rows_, columns_;
};

/// Cuts channels-last images into tiles. Tile (i, j) is the square of `side` pixels that begins at pixel (step·i -
/// padding, step·j - padding). Gives the addresses of its pixels, and substitutes for pixels outside the image.
class TiledImages {
 public:
  static constexpr int kMaxPixels = 64;

  /// Cuts every image of f32 channels-last `images`, whose memory must outlive this object. `side` is 4, 6 or 8.
  TiledImages(const Tensor& images, int64_t side, int64_t step, int64_t padding);

  /// Gives the pixels of a tile, row by row, each readable in whole vectors. Pixels outside the image are zeros.
  void readable(const TilePlace& at, const float** pixels) const;
  /// As `readable`, for writing. `outside` [channels] receives the pixels outside the image.
  void writable(const TilePlace& at, float* outside, float** pixels) const;
  /// Begins to load the last `step` rows and columns of a tile: most tiles share the others with tiles before them.
  /// Without this, the transforms of few channels wait for memory most of the time.
  void prefetch(const TilePlace& at) const;

 private:
  const float* last_pixel() const { return first_ + (images_ * height_ * width_ - 1) * channels_; }
  template <class Pointer>
  void pixels_of(const TilePlace& at, Pointer outside, Pointer* pixels) const;
  template <int64_t kSide, class Pointer>
  void pixels_inside(Pointer corner, Pointer* pixels) const;

  int64_t side_, step_, padding_;
  float* first_;
  int64_t images_, channels_, height_, width_;
  Tensor zeros_;          ///< one pixel of zeros
  Tensor readable_last_;  ///< the last pixel with padding: a vector of the original would end beyond the tensor
};

inline TiledImages::TiledImages(const Tensor& images, int64_t side, int64_t step, int64_t padding)
    : side_(side),
      step_(step),
      padding_(padding),
      first_(images.data<float>()),
      images_(images.size(0)),
      channels_(images.size(1)),
      height_(images.size(2)),
      width_(images.size(3)) {
  const int64_t vector = simd::kernels().width;
  zeros_ = Tensor::zeros({channels_ + vector});
  if (channels_ % vector != 0) {
    readable_last_ = Tensor::zeros({channels_ + vector});
    std::copy_n(last_pixel(), channels_, readable_last_.data<float>());
  }
}

inline void TiledImages::readable(const TilePlace& at, const float** pixels) const {
  pixels_of<const float*>(at, zeros_.data<float>(), pixels);
  if (!readable_last_.defined() || at.image < images_ - 1) return;
  std::replace(pixels, pixels + side_ * side_, last_pixel(), static_cast<const float*>(readable_last_.data<float>()));
}

inline void TiledImages::writable(const TilePlace& at, float* outside, float** pixels) const {
  pixels_of<float*>(at, outside, pixels);
}

// Always inline, because GCC 12 drops the call of a function that only prefetches.
[[gnu::always_inline]] inline void TiledImages::prefetch(const TilePlace& at) const {
  constexpr int64_t kLine = 16;  // floats
  if (at.image >= images_) return;
  const int64_t bottom = std::min(height_, at.row * step_ - padding_ + side_);
  const int64_t right = std::min(width_, at.column * step_ - padding_ + side_), columns = std::min(right, step_);
  for (int64_t row = std::max<int64_t>(0, bottom - step_); row < bottom; ++row) {
    const float* line = first_ + ((at.image * height_ + row) * width_ + right - columns) * channels_;
    for (int64_t c = 0; c < columns * channels_; c += kLine) __builtin_prefetch(line + c);
  }
}

/// The pixels of a tile that no border cuts. `corner` is its first one.
template <int64_t kSide, class Pointer>
void TiledImages::pixels_inside(Pointer corner, Pointer* pixels) const {
  const int64_t channels = channels_, line = width_ * channels_;
  for (int64_t row = 0; row < kSide; ++row)
    for (int64_t column = 0; column < kSide; ++column)
      pixels[row * kSide + column] = corner + row * line + column * channels;
}

template <class Pointer>
void TiledImages::pixels_of(const TilePlace& at, Pointer outside, Pointer* pixels) const {
  const int64_t top = at.row * step_ - padding_, left = at.column * step_ - padding_;
  const int64_t row_begin = std::max<int64_t>(0, top), row_end = std::min(height_, top + side_);
  const int64_t column_begin = std::max<int64_t>(0, left), column_end = std::min(width_, left + side_);
  const Pointer corner = first_ + ((at.image * height_ + row_begin) * width_ + column_begin) * channels_;
  if (row_end - row_begin == side_ && column_end - column_begin == side_) {
    switch (side_) {
      case 4: return pixels_inside<4>(corner, pixels);
      case 6: return pixels_inside<6>(corner, pixels);
      default: return pixels_inside<8>(corner, pixels);
    }
  }
  std::fill_n(pixels, side_ * side_, outside);
  for (int64_t row = row_begin; row < row_end; ++row) {
    Pointer pixel = corner + (row - row_begin) * width_ * channels_;
    for (int64_t column = column_begin; column < column_end; ++column, pixel += channels_)
      pixels[(row - top) * side_ + column - left] = pixel;
  }
}

}  // namespace tern::cpu
