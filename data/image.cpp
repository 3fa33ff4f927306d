#include "tern/data/image.h"

#include <algorithm>
#include <utility>

namespace tern {

Image upright(const ImageView& stored, int orientation) {
  const uint8_t* first = stored.values;
  std::ptrdiff_t right = stored.pixel_bytes, down = static_cast<std::ptrdiff_t>(stored.row_bytes);
  // Exif 2.32, 4.6.4 A: the orientation says on which sides of the upright image the stored row 0 and column 0 are.
  // From 5 on, rows and columns are exchanged.
  if (orientation == 2 || orientation == 3 || orientation >= 7) {
    first += (stored.width - 1) * right;
    right = -right;
  }
  if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7) {
    first += (stored.height - 1) * down;
    down = -down;
  }
  Image image{.width = stored.width, .height = stored.height, .channels = stored.channels, .values = {}};
  if (orientation >= 5) {
    std::swap(right, down);
    std::swap(image.width, image.height);
  }
  image.values.resize(static_cast<size_t>(image.width) * static_cast<size_t>(image.height) *
                      static_cast<size_t>(image.channels));
  uint8_t* to = image.values.data();
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) to = std::copy_n(first + y * down + x * right, image.channels, to);
  return image;
}

ImageView middle(const ImageView& image, int width, int height) {
  const int64_t across = int64_t{image.width} * height, down = int64_t{image.height} * width;
  ImageView part = image;
  if (across > down) part.width = std::max(1, static_cast<int>(down / height));
  if (down > across) part.height = std::max(1, static_cast<int>(across / width));
  const auto left = static_cast<size_t>((image.width - part.width) / 2),
             top = static_cast<size_t>((image.height - part.height) / 2);
  part.values += top * image.row_bytes + left * static_cast<size_t>(image.pixel_bytes);
  return part;
}

}  // namespace tern
