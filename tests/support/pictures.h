#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tern/data/image.h"

// Picture files, made here.
namespace tern {

/// Each pixel of another colour than its neighbours, smooth enough for JPEG; `number` tells pictures apart.
Image test_picture(int width, int height, int number = 0);

/// `channels` 1 to 4: grey, grey and opacity, colour, colour and opacity; `values` [height, width, channels].
std::string png_bytes(int width, int height, int channels, const std::vector<uint8_t>& values);
std::string png_bytes(const Image& image);
/// Of grey pixels with 16 bits each.
std::string png16_bytes(int width, int height, const std::vector<uint16_t>& values);
std::string jpeg_bytes(const Image& image, int quality = 95);
/// `jpeg` as a camera would have written it that was held in such a way; Exif is written in either byte order.
std::string with_orientation(const std::string& jpeg, int orientation, bool little_endian = true);
/// A JPEG or PNG with another size in its header.
std::string with_extent(std::string file, int width, int height);

}  // namespace tern
