#pragma once

#include <cstdint>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/data/image.h"

namespace tern {

/// The middle of a person's photograph, as large a part of it as has the proportions of `spec`, at the size of `spec`.
std::vector<uint8_t> adapt_photo(const Image& image, const ImageSpec& spec);

/// All of it at the size of `spec`, whatever its proportions.
std::vector<uint8_t> squash_photo(const Image& image, const ImageSpec& spec);

}  // namespace tern
