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
  float brightness = 0;                     ///< added, as a fraction of full scale
  float contrast = 1;                       ///< factor on the distance from the channel's mean
  float saturation = 1;                     ///< factor on the distance from the pixel's grey
  int32_t area_height = 0, area_width = 0;  ///< of the crop before it is resized; 0: it is not resized
  int32_t cut_top = 0, cut_left = 0;        ///< first row and column of the cut square in the result; may be outside

  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};

/// The steps from an example's u8 pixels to a network's f32 input: pad, crop, resize, flip, brightness, contrast,
/// saturation, then normalize or standardize, then cut, in this order. `draw` makes the random choices and `apply` uses
/// them; both are pure functions.
struct Transform {
  int64_t pad = 0;           ///< pixels added on each side
  bool reflect_pad = false;  ///< false: they are black; true: a mirror image, which does not repeat the edge
  int64_t crop_height = 0;   ///< 0: the height of the example
  int64_t crop_width = 0;
  bool random_crop = false;  ///< false: crop at the centre
  /// Crops a random area instead, and resizes it to crop_height × crop_width (Szegedy et al., "Going deeper with
  /// convolutions", 2015): its share of the image is uniform in [least_area, 1], its width by its height in [3/4, 4/3].
  bool random_area = false;
  float least_area = 0.08f;
  bool random_flip = false;  ///< mirror left and right, with probability 1/2
  /// Mirrors a random half of the images in an epoch, and the others in the next (Jordan, "94 % on CIFAR-10 in 3.29
  /// seconds on a single GPU", 2024).
  bool alternating_flip = false;
  float brightness = 0;    ///< largest change in either direction, as a fraction of full scale
  float contrast_low = 1;  ///< the contrast is uniform in [contrast_low, contrast_high]
  float contrast_high = 1;
  float saturation_low = 1;  ///< likewise; needs three channels: red, green and blue
  float saturation_high = 1;
  /// Normalization: (x/255 − mean) / deviation, with one value for all channels or one per channel. The defaults give
  /// (x/255 − 0.5)·2.
  std::vector<float> mean = {0.5f};
  std::vector<float> deviation = {0.5f};
  /// true: standardize each image instead, (x − mean) / max(std, 1/√n), over the image's n values x in 0 to 255.
  bool standardize = false;
  /// The side of a square around a random pixel whose values become 0 (DeVries and Taylor, "Improved regularization of
  /// convolutional neural networks with cutout", 2017). 0: none. An odd side has its middle at the pixel.
  int64_t cutout = 0;

  /// The same transform without randomness: crops at the centre.
  Transform for_evaluation() const;
  /// The shape of the transformed examples. Throws InputError if the crop does not fit, `mean` or `deviation` has the
  /// wrong length, a deviation is not positive, or two fields contradict each other.
  ImageSpec output(const ImageSpec& input) const;
  /// Draws the random choices for one example; `index` is its index in the data set. A pure function.
  Augmentation draw(const ImageSpec& input, uint64_t seed, int64_t epoch, int64_t index) const;
  /// Transforms `pixels` [H, W, C] of shape `input` to `image` [h, w, C] of shape `output(input)`.
  void apply(const ImageSpec& input, const Augmentation& augmentation, std::span<const uint8_t> pixels,
             std::span<float> image) const;
};

}  // namespace tern
