#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tern {

/// A view of pixels that another object owns; rows run from the top. A value.
struct ImageView {
  const uint8_t* values = nullptr;
  int width = 0, height = 0;
  int channels = 1;      ///< 1: grey, 3: red, green and blue; 0 is black
  int pixel_bytes = 1;   ///< distance from a pixel to its right neighbour, at least `channels`
  size_t row_bytes = 0;  ///< distance from a pixel to the one below it
};

/// A picture in memory; rows run from the top. A value.
struct Image {
  int width = 0, height = 0;
  int channels = 1;             ///< 1: grey, 3: red, green and blue
  std::vector<uint8_t> values;  ///< [height, width, channels]; 0 is black

  uint8_t at(int x, int y, int channel = 0) const {
    const size_t pixel = static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x);
    return values[pixel * static_cast<size_t>(channels) + static_cast<size_t>(channel)];
  }
  ImageView view() const {
    const size_t row = static_cast<size_t>(width) * static_cast<size_t>(channels);
    return {values.data(), width, height, channels, channels, row};
  }
};

/// Returns `stored` mirrored and rotated as Exif's `orientation`, 1 to 8, says; 1 changes nothing.
Image upright(const ImageView& stored, int orientation);

/// The largest centred part of `image` that has the proportions of `width`×`height`.
ImageView middle(const ImageView& image, int width, int height);

/// Resizes `image` to `to` [height, width, channels]. Along an axis that shrinks, an output pixel is the mean of the
/// input that it covers. Along an axis that grows, it is linearly interpolated between pixel centres. The same bytes on
/// every machine. Throws Error if a size is 0 or `to` has the wrong size.
void resize(const ImageView& image, int width, int height, std::span<uint8_t> to);

Image resize(const ImageView& image, int width, int height);

}  // namespace tern
