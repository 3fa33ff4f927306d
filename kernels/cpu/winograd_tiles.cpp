#include "tern/kernels/cpu/winograd_tiles.h"

#include <algorithm>

namespace tern::cpu {

TiledImages::TiledImages(const Tensor& images, int64_t tiles_h, int64_t tiles_w, int64_t side, int64_t step,
                         int64_t padding)
    : images_(images), tiles_h_(tiles_h), tiles_w_(tiles_w), side_(side), step_(step), padding_(padding) {
  const int64_t channels = images.size(1), width = simd::kernels().width;
  zeros_ = Tensor::zeros({channels + width});
  if (channels % width != 0) {
    last_pixel_ = Tensor::zeros({channels + width});
    std::copy_n(images.data<float>() + images.numel() - channels, channels, last_pixel_.data<float>());
  }
}

void TiledImages::readable(int64_t tile, const float** pixels) const {
  pixels_of<const float*>(tile, zeros_.data<float>(), pixels);
  if (!last_pixel_.defined()) return;
  const float* last = images_.data<float>() + images_.numel() - images_.size(1);
  std::replace(pixels, pixels + side_ * side_, last, static_cast<const float*>(last_pixel_.data<float>()));
}

void TiledImages::writable(int64_t tile, float* outside, float** pixels) const {
  pixels_of<float*>(tile, outside, pixels);
}

template <class Pointer>
void TiledImages::pixels_of(int64_t tile, Pointer outside, Pointer* pixels) const {
  const int64_t channels = images_.size(1), height = images_.size(2), width = images_.size(3);
  const int64_t image = tile / (tiles_h_ * tiles_w_);
  const int64_t top = tile / tiles_w_ % tiles_h_ * step_ - padding_, left = tile % tiles_w_ * step_ - padding_;
  Pointer first = images_.data<float>() + image * height * width * channels;
  for (int64_t i = 0; i < side_; ++i) {
    const int64_t row = top + i;
    for (int64_t j = 0; j < side_; ++j) {
      const int64_t column = left + j;
      const bool inside = row >= 0 && row < height && column >= 0 && column < width;
      *pixels++ = inside ? first + (row * width + column) * channels : outside;
    }
  }
}

}  // namespace tern::cpu
