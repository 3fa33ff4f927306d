#pragma once

#include <cstdint>
#include <vector>

#include "tern/core/tensor.h"

namespace tern::kernels {

/// What a data set's transform does to every image alike; data/transforms.h says more.
struct ImageMap {
  int64_t pad = 0;                     ///< black pixels around the image, before the crop
  bool standardize = false;            ///< by the image's own mean and deviation, else by these:
  std::vector<float> mean, deviation;  ///< one, or one per channel, in fractions of full scale
};

/// What chance decides for one image, as a row of `draws`: f64 {first row, first column of the crop in the padded
/// image, 1 where it is flipped, brightness, contrast}.
inline constexpr int64_t kImageDraws = 5;
inline constexpr int64_t kMostImageChannels = 4;

/// On CUDA: images[n] = what tern::Transform::apply makes of pixels[rows[n]], bit for bit. pixels u8 [M, C, H, W] and
/// images f32 [N, C, h, w], channels_last; rows i64 [N]; draws f64 [N, kImageDraws]; C at most kMostImageChannels.
void transform_images(const Tensor& pixels, const Tensor& rows, const Tensor& draws, const ImageMap& map,
                      Tensor& images);

}  // namespace tern::kernels
