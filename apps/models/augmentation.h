#pragma once

#include "tern/data/transforms.h"

// What the networks' training images go through in the papers, beside the normalization of their data set.

namespace tern::models {

/// Wen et al., 2017, section 4.1: crops of 24×24, mirrored, brighter or darker, of another contrast, standardized.
inline void augment_for_cifarnet(Transform& transform, const ImageSpec&) {
  transform.crop_height = transform.crop_width = 24;
  transform.random_crop = transform.random_flip = true;
  transform.brightness = 63.0f / 255;
  transform.contrast_low = 0.2f;
  transform.contrast_high = 1.8f;
  transform.standardize = true;
}

/// He et al., 2016, mirrored as well: of images above 224×224 crops of that size (section 3.4), of others crops out of
/// images padded by 4 pixels (section 4.2).
inline void augment_for_resnet(Transform& transform, const ImageSpec& images) {
  constexpr int64_t kCrop = 224;
  transform.random_crop = transform.random_flip = true;
  if (images.height > kCrop && images.width > kCrop)
    transform.crop_height = transform.crop_width = kCrop;
  else
    transform.pad = 4;
}

/// Wen et al., 2017, after Caffe: crops of 224×224, mirrored, less ImageNet's mean colour on a scale of 255.
inline void augment_for_alexnet(Transform& transform, const ImageSpec&) {
  transform.crop_height = transform.crop_width = 224;
  transform.random_crop = transform.random_flip = true;
  transform.mean = {123.68f / 255, 116.78f / 255, 103.94f / 255};
  transform.deviation = {1.0f / 255};
}

}  // namespace tern::models
