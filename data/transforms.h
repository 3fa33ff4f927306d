#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tern/data/dataset.h"

namespace tern {

/// The random choices for one example. A device needs only these to repeat `Transform::apply` on raw pixels.
struct Augmentation {
  int32_t top = 0;   ///< first row of the crop in the padded image
  int32_t left = 0;  ///< first column of the crop
  bool flip = false;
  float brightness = 0;  ///< added, as a fraction of full scale
  float contrast = 1;    ///< factor on the distance from the channel's mean

  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};

/// The steps from an example's u8 pixels to a network's f32 input: pad, crop, flip, brightness, contrast, then
/// normalize or standardize, in this order. `draw` makes the random choices and `apply` uses them; both are pure
/// functions.
struct Transform {
  int64_t pad = 0;          ///< black pixels added on each side
  int64_t crop_height = 0;  ///< 0: the height of the example
  int64_t crop_width = 0;
  bool random_crop = false;  ///< false: crop at the centre
  bool random_flip = false;  ///< mirror left and right, with probability 1/2
  float brightness = 0;      ///< largest change in either direction, as a fraction of full scale
  float contrast_low = 1;    ///< the contrast is uniform in [contrast_low, contrast_high]
  float contrast_high = 1;
  /// Normalization: (x/255 − mean) / deviation, with one value for all channels or one per channel. The defaults give
  /// (x/255 − 0.5)·2.
  std::vector<float> mean = {0.5f};
  std::vector<float> deviation = {0.5f};
  /// true: standardize each image instead, (x − mean) / max(std, 1/√n), over the image's n values x in 0 to 255.
  bool standardize = false;

  /// The same transform without randomness: crops at the centre.
  Transform for_evaluation() const;
  /// The shape of the transformed examples. Throws InputError if the crop does not fit, `mean` or `deviation` has the
  /// wrong length, or a deviation is not positive.
  ImageSpec output(const ImageSpec& input) const;
  /// Draws the random choices for one example; `index` is its index in the data set. A pure function.
  Augmentation draw(const ImageSpec& input, uint64_t seed, int64_t epoch, int64_t index) const;
  /// Transforms `pixels` [H, W, C] of shape `input` to `image` [h, w, C] of shape `output(input)`.
  void apply(const ImageSpec& input, const Augmentation& augmentation, std::span<const uint8_t> pixels,
             std::span<float> image) const;
};

}  // namespace tern
