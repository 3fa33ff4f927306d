#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tern/data/image.h"

// Makes picture files.
namespace tern {

/// Each pixel has another colour than its neighbours, and the picture is smooth enough for JPEG. Each `number` gives
/// another picture.
Image test_picture(int width, int height, int number = 0);

/// `channels` is 1 to 4: grey, grey and opacity, colour, colour and opacity. `values` is [height, width, channels].
std::string png_bytes(int width, int height, int channels, const std::vector<uint8_t>& values);
std::string png_bytes(const Image& image);
/// A PNG of grey pixels with 16 bits each.
std::string png16_bytes(int width, int height, const std::vector<uint16_t>& values);
std::string jpeg_bytes(const Image& image, int quality = 95);
/// A BMP of 24 bits a pixel.
std::string bmp_bytes(const Image& image);
/// `jpeg` as a camera in such an orientation writes it. Exif is written in either byte order.
std::string with_orientation(const std::string& jpeg, int orientation, bool little_endian = true);
/// A JPEG or PNG with this size in its header. The pixels stay as they are.
std::string with_extent(std::string file, int width, int height);

}  // namespace tern
