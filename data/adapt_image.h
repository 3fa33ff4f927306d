#pragma once

#include <cstdint>
#include <vector>

#include "tern/data/dataset.h"
#include "tern/data/image.h"

namespace tern {

/// Converts a picture of one digit as MNIST was made (LeCun, Bottou, Bengio and Haffner, 1998, III.A): the ink becomes
/// bright on black, is fitted into 20×20 with its proportions, and is placed in 28×28 with its centre of mass in the
/// middle. A 28×28 picture on black is not changed.
std::vector<uint8_t> adapt_digit(const Image& image, const ImageSpec& spec);

/// Crops the largest centred part of a photograph with the proportions of `spec`, and resizes it to the size of `spec`.
std::vector<uint8_t> adapt_photo(const Image& image, const ImageSpec& spec);

/// Resizes the whole picture to the size of `spec`; does not keep its proportions.
std::vector<uint8_t> squash_photo(const Image& image, const ImageSpec& spec);

}  // namespace tern
