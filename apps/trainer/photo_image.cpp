#include "tern/apps/trainer/photo_image.h"

#include "tern/data/image.h"

namespace tern {

std::vector<uint8_t> adapt_photo(const Image& image, const ImageSpec& spec) {
  const int width = static_cast<int>(spec.width), height = static_cast<int>(spec.height);
  return resize(middle(image.view(), width, height), width, height).values;
}

std::vector<uint8_t> squash_photo(const Image& image, const ImageSpec& spec) {
  return resize(image.view(), static_cast<int>(spec.width), static_cast<int>(spec.height)).values;
}

}  // namespace tern
