#include "tern/kernels/cpu/winograd_tiles.h"

#include <algorithm>

namespace tern::cpu {

TiledImages::TiledImages(const Tensor& images, int64_t tiles_h, int64_t tiles_w, int64_t side, int64_t step,
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

void TiledImages::readable(int64_t tile, const float** pixels) const {
  pixels_of<const float*>(tile, zeros_.data<float>(), pixels);
  if (!last_pixel_.defined() || tile < count() - tiles_in_image()) return;
  const float* last = first_ + images_.numel() - channels_;
  std::replace(pixels, pixels + side_ * side_, last, static_cast<const float*>(last_pixel_.data<float>()));
}

void TiledImages::writable(int64_t tile, float* outside, float** pixels) const {
  pixels_of<float*>(tile, outside, pixels);
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
