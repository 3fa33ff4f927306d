#include "tern/apps/trainer/photo_image.h"

#include <algorithm>

namespace tern {

std::vector<uint8_t> adapt_photo(const Image& image, const ImageSpec& spec) {
  const int width = static_cast<int>(spec.width), height = static_cast<int>(spec.height);
  const int64_t across = int64_t{image.width} * height, down = int64_t{image.height} * width;
  Image middle{.width = across > down ? std::max(1, static_cast<int>(down / height)) : image.width,
               .height = down > across ? std::max(1, static_cast<int>(across / width)) : image.height,
               .channels = image.channels,
               .values = {}};
  const int left = (image.width - middle.width) / 2, top = (image.height - middle.height) / 2;
  for (int y = 0; y < middle.height; ++y)
    for (int x = 0; x < middle.width; ++x)
      for (int channel = 0; channel < image.channels; ++channel)
        middle.values.push_back(image.at(left + x, top + y, channel));
  return resize(middle, width, height).values;
}

}  // namespace tern
