#pragma once

#include <cstdint>
#include <vector>

#include "tern/core/tensor.h"

namespace tern::kernels {

/// The part of a data set's transform that is the same for every image. data/transforms.h has the details.
struct ImageMap {
  int64_t pad = 0;                     ///< pixels around the image, before the crop
  bool reflect_pad = false;            ///< they are a mirror image, not black
  bool standardize = false;            ///< use the image's own mean and deviation, not the ones below
  std::vector<float> mean, deviation;  ///< one value, or one per channel; unit: full scale
  int64_t cutout = 0;                  ///< side of the square that becomes 0
};

/// Number of random values per image, a row of `draws`: f64 {first row and first column of the crop in the padded
/// image, 1 if the image is flipped, brightness, contrast, saturation, height and width of the crop before it is
/// resized or 0, first row and first column of the cut square}.
inline constexpr int64_t kImageDraws = 10;
inline constexpr int64_t kMostImageChannels = 4;

/// CUDA only: images[n] = the result of tern::Transform::apply on pixels[rows[n]], bit for bit, or that rounded to
/// bf16. pixels: u8 [M, C, H, W], channels_last. images: f32 or bf16 [N, C or more, h, w]; channels behind C become 0.
/// rows: i64 [N]; if it is undefined, image n is made of pixels[n]. draws: f64 [N, kImageDraws]. C is at most
/// kMostImageChannels.
void transform_images(const Tensor& pixels, const Tensor& rows, const Tensor& draws, const ImageMap& map,
                      Tensor& images);

}  // namespace tern::kernels
