#pragma once

#include <cstdint>
#include <span>

#include "tern/data/image.h"

namespace tern {

/// Writes `image` at another size to `to` [height, width, channels]. Where it becomes smaller, a pixel is the mean of
/// what it covers; where larger, linear between the centres of pixels. The same bytes on every machine.
void resize(const ImageView& image, int width, int height, std::span<uint8_t> to);

Image resize(const ImageView& image, int width, int height);

}  // namespace tern
