#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tern/data/dataset.h"

namespace tern {

/// What chance decided for one example: all a device needs to repeat `Transform::apply` on raw pixels.
struct Augmentation {
  int32_t top = 0;   ///< first row of the crop within the padded image
  int32_t left = 0;  ///< first column
  bool flip = false;
  float brightness = 0;  ///< added, in fractions of full scale
  float contrast = 1;    ///< factor on the distance from each channel's mean

  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};

/// The way from an example's u8 pixels to a network's f32 input, as plain settings: pad, crop, flip, brightness,
/// contrast, then normalize or standardize, in this order. Drawing and applying are apart, and both are pure.
struct Transform {
  int64_t pad = 0;          ///< black pixels added on each side
  int64_t crop_height = 0;  ///< 0: the example's own
  int64_t crop_width = 0;
  bool random_crop = false;  ///< false: from the centre
  bool random_flip = false;  ///< left and right, for half of the examples
  float brightness = 0;      ///< largest change either way, in fractions of full scale
  float contrast_low = 1;    ///< the factor is uniform in [contrast_low, contrast_high]
  float contrast_high = 1;
  /// (x/255 − mean) / deviation, one value or one per channel; these defaults are (x/255 − 0.5)·2.
  std::vector<float> mean = {0.5f};
  std::vector<float> deviation = {0.5f};
  /// Per-image standardization instead: (x − mean) / max(std, 1/√n), over the image's n values of full scale 255.
  bool standardize = false;

  /// The same without chance: the crop from the centre, all else as it is.
  Transform for_evaluation() const;
  /// What examples of `input` become; an InputError where the crop does not fit or the channels disagree.
  ImageSpec output(const ImageSpec& input) const;
  /// A pure function of its arguments; `index` is the example's global index.
  Augmentation draw(const ImageSpec& input, uint64_t seed, int64_t epoch, int64_t index) const;
  /// `pixels` [H, W, C] of `input`, `image` [h, w, C] of `output(input)`.
  void apply(const ImageSpec& input, const Augmentation& augmentation, std::span<const uint8_t> pixels,
             std::span<float> image) const;
};

}  // namespace tern
