#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tern {

/// A picture in memory, grey values in rows from the top; a value.
struct Image {
  int width = 0, height = 0;
  std::vector<uint8_t> grey;  ///< [height, width]; 0 black

  uint8_t at(int x, int y) const {
    return grey[static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)];
  }
};

/// Reads PNG, JPEG, BMP, GIF or PNM; colours become grey, transparent places show white paper. An InputError names
/// the file and what is wrong with it.
Image read_image(const std::string& path);

/// `image` at another size; a pixel is the mean of what it covers.
Image resize(const Image& image, int width, int height);

}  // namespace tern
