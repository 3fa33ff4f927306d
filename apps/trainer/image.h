#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tern {

/// A picture in memory, in rows from the top; a value.
struct Image {
  int width = 0, height = 0;
  int channels = 1;             ///< 1: grey, 3: red, green and blue
  std::vector<uint8_t> values;  ///< [height, width, channels]; 0 black

  uint8_t at(int x, int y, int channel = 0) const {
    const size_t pixel = static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x);
    return values[pixel * static_cast<size_t>(channels) + static_cast<size_t>(channel)];
  }
};

/// Reads PNG, JPEG, BMP, GIF or PNM as grey (one channel) or in colour (three); transparent places show white paper. An
/// InputError names the file and what is wrong with it.
Image read_image(const std::string& path, int channels = 1);

/// `image` at another size; a pixel is the mean of what it covers.
Image resize(const Image& image, int width, int height);

}  // namespace tern
