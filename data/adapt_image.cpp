#include "tern/data/adapt_image.h"

#include <algorithm>
#include <cmath>

namespace tern {
namespace {

constexpr int kBox = 20;

/// The median grey value of the picture's edge: the colour of the paper.
int background(const Image& image) {
  std::vector<uint8_t> edge;
  for (int x = 0; x < image.width; ++x) edge.insert(edge.end(), {image.at(x, 0), image.at(x, image.height - 1)});
  for (int y = 0; y < image.height; ++y) edge.insert(edge.end(), {image.at(0, y), image.at(image.width - 1, y)});
  std::ranges::nth_element(edge, edge.begin() + static_cast<std::ptrdiff_t>(edge.size() / 2));
  return edge[edge.size() / 2];
}

/// Converts to bright ink on black, 0 to 255; removes faint differences of the paper.
Image ink_of(Image image) {
  const int paper = background(image);
  const bool dark_ink = paper > 127;
  int most = 1;
  for (const uint8_t grey : image.values) most = std::max(most, dark_ink ? paper - grey : grey - paper);
  for (uint8_t& grey : image.values) {
    const double ink = std::max(0, dark_ink ? paper - grey : grey - paper) / static_cast<double>(most);
    grey = static_cast<uint8_t>(std::clamp((ink - 0.15) / 0.85, 0.0, 1.0) * 255 + 0.5);
  }
  return image;
}

/// The part of `image` with ink; all of it if there is none.
Image crop_to_ink(const Image& image) {
  int left = image.width, right = -1, top = image.height, bottom = -1;
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) {
      if (image.at(x, y) == 0) continue;
      left = std::min(left, x);
      right = std::max(right, x);
      top = std::min(top, y);
      bottom = std::max(bottom, y);
    }
  if (right < 0) return image;
  Image crop{.width = right - left + 1, .height = bottom - top + 1, .values = {}};
  for (int y = top; y <= bottom; ++y)
    for (int x = left; x <= right; ++x) crop.values.push_back(image.at(x, y));
  return crop;
}

/// Puts `ink` into a black picture, with its centre of mass as near to the middle as possible without cutting it.
Image center(const Image& ink, int width, int height) {
  double mass = 0, sum_x = 0, sum_y = 0;
  for (int y = 0; y < ink.height; ++y)
    for (int x = 0; x < ink.width; ++x) {
      mass += ink.at(x, y);
      sum_x += (x + 0.5) * ink.at(x, y);
      sum_y += (y + 0.5) * ink.at(x, y);
    }
  const double center_x = mass > 0 ? sum_x / mass : ink.width / 2.0;
  const double center_y = mass > 0 ? sum_y / mass : ink.height / 2.0;
  const int left = std::clamp(static_cast<int>(std::lround(width / 2.0 - center_x)), 0, width - ink.width);
  const int top = std::clamp(static_cast<int>(std::lround(height / 2.0 - center_y)), 0, height - ink.height);
  Image centered{.width = width, .height = height, .values = {}};
  centered.values.resize(static_cast<size_t>(width) * static_cast<size_t>(height));
  for (int y = 0; y < ink.height; ++y)
    for (int x = 0; x < ink.width; ++x)
      centered.values[static_cast<size_t>(y + top) * static_cast<size_t>(width) + static_cast<size_t>(x + left)] =
          ink.at(x, y);
  return centered;
}

}  // namespace

std::vector<uint8_t> adapt_digit(const Image& image, const ImageSpec& spec) {
  const int width = static_cast<int>(spec.width), height = static_cast<int>(spec.height);
  if (image.width == width && image.height == height && background(image) < 32) return image.values;
  const Image ink = crop_to_ink(ink_of(image));
  const double scale = static_cast<double>(kBox) / std::max(ink.width, ink.height);
  const Image fitted = resize(ink.view(), std::max(1, static_cast<int>(std::lround(ink.width * scale))),
                              std::max(1, static_cast<int>(std::lround(ink.height * scale))));
  return center(fitted, width, height).values;
}

std::vector<uint8_t> adapt_photo(const Image& image, const ImageSpec& spec) {
  const int width = static_cast<int>(spec.width), height = static_cast<int>(spec.height);
  return resize(middle(image.view(), width, height), width, height).values;
}

std::vector<uint8_t> squash_photo(const Image& image, const ImageSpec& spec) {
  return resize(image.view(), static_cast<int>(spec.width), static_cast<int>(spec.height)).values;
}

}  // namespace tern
