#pragma once

#include <cstdint>
#include <vector>

#include "tern/apps/trainer/image.h"
#include "tern/data/dataset.h"

namespace tern {

/// The middle of a person's photograph, as large a part of it as has the proportions of `spec`, at the size of `spec`.
std::vector<uint8_t> adapt_photo(const Image& image, const ImageSpec& spec);

}  // namespace tern
