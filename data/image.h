#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tern {

/// Pixels that somebody else owns, in rows from the top; a value.
struct ImageView {
  const uint8_t* values = nullptr;
  int width = 0, height = 0;
  int channels = 1;      ///< 1: grey, 3: red, green and blue; 0 black
  int pixel_bytes = 1;   ///< from a pixel to the one beside it, at least `channels`
  size_t row_bytes = 0;  ///< from a pixel to the one below it
};

/// A picture in memory, in rows from the top; a value.
struct Image {
  int width = 0, height = 0;
  int channels = 1;             ///< 1: grey, 3: red, green and blue
  std::vector<uint8_t> values;  ///< [height, width, channels]; 0 black

  uint8_t at(int x, int y, int channel = 0) const {
    const size_t pixel = static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x);
    return values[pixel * static_cast<size_t>(channels) + static_cast<size_t>(channel)];
  }
  ImageView view() const {
    const size_t row = static_cast<size_t>(width) * static_cast<size_t>(channels);
    return {values.data(), width, height, channels, channels, row};
  }
};

/// The picture that `stored` becomes by Exif's `orientation` of it, 1 to 8: mirrored, turned, or (1) as it is.
Image upright(const ImageView& stored, int orientation);

/// The middle of `image`, as large a part of it as has the proportions of `width`×`height`.
ImageView middle(const ImageView& image, int width, int height);

/// Writes `image` at another size to `to` [height, width, channels]. Where it becomes smaller, a pixel is the mean of
/// what it covers; where larger, linear between the centres of pixels. The same bytes on every machine.
void resize(const ImageView& image, int width, int height, std::span<uint8_t> to);

Image resize(const ImageView& image, int width, int height);

}  // namespace tern
