#include "tests/support/pictures.h"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

#include <zlib.h>

#include <cmath>

namespace tern {
namespace {

void append(void* text, void* bytes, int size) {
  static_cast<std::string*>(text)->append(static_cast<const char*>(bytes), static_cast<size_t>(size));
}

std::string big_endian(uint32_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 0xff);
  return text;
}

std::string chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<uint32_t>(data.size()), 4) + body + big_endian(static_cast<uint32_t>(crc), 4);
}

}  // namespace

Image test_picture(int width, int height, int number) {
  Image image{.width = width, .height = height, .channels = 3, .values = {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int channel = 0; channel < 3; ++channel) {
        const double wave = std::sin(0.11 * x * (channel + 1) + 0.4 * number) + std::cos(0.07 * y * (3 - channel));
        image.values.push_back(static_cast<uint8_t>(127.5 + 60 * wave));
      }
  return image;
}

std::string png_bytes(int width, int height, int channels, const std::vector<uint8_t>& values) {
  std::string text;
  stbi_write_png_to_func(append, &text, width, height, channels, values.data(), 0);
  return text;
}

std::string png_bytes(const Image& image) { return png_bytes(image.width, image.height, image.channels, image.values); }

std::string png16_bytes(int width, int height, const std::vector<uint16_t>& values) {
  std::string rows;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % static_cast<size_t>(width) == 0) rows += '\0';  // no filter
    rows += big_endian(values[i], 2);
  }
  uLongf size = compressBound(static_cast<uLong>(rows.size()));
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()),
           static_cast<uLong>(rows.size()));
  packed.resize(size);
  const std::string grey16("\x10\0\0\0\0", 5);
  return "\x89PNG\r\n\x1a\n" +
         chunk("IHDR",
               big_endian(static_cast<uint32_t>(width), 4) + big_endian(static_cast<uint32_t>(height), 4) + grey16) +
         chunk("IDAT", packed) + chunk("IEND", "");
}

std::string jpeg_bytes(const Image& image, int quality) {
  std::string text;
  stbi_write_jpg_to_func(append, &text, image.width, image.height, image.channels, image.values.data(), quality);
  return text;
}

std::string bmp_bytes(const Image& image) {
  std::string text;
  stbi_write_bmp_to_func(append, &text, image.width, image.height, image.channels, image.values.data());
  return text;
}

std::string with_orientation(const std::string& jpeg, int orientation, bool little_endian) {
  const auto number = [&](uint32_t value, int bytes) {
    std::string text = big_endian(value, bytes);
    return little_endian ? std::string(text.rbegin(), text.rend()) : text;
  };
  // A TIFF block: a directory with the width, then the orientation.
  const std::string tiff = (little_endian ? "II" : "MM") + number(42, 2) + number(8, 4) + number(2, 2) +
                           number(0x0100, 2) + number(4, 2) + number(1, 4) + number(77, 4) +  //
                           number(0x0112, 2) + number(3, 2) + number(1, 4) +
                           number(static_cast<uint32_t>(orientation), 2) + number(0, 2) + number(0, 4);
  const std::string segment = std::string("Exif\0\0", 6) + tiff;
  return jpeg.substr(0, 2) + "\xff\xe1" + big_endian(static_cast<uint32_t>(segment.size() + 2), 2) + segment +
         jpeg.substr(2);
}

std::string with_extent(std::string file, int width, int height) {
  const auto w = static_cast<uint32_t>(width), h = static_cast<uint32_t>(height);
  if (const size_t header = file.find("IHDR"); header == 12)
    return file.replace(16, 8, big_endian(w, 4) + big_endian(h, 4));
  return file.replace(file.find("\xff\xc0") + 5, 4, big_endian(h, 2) + big_endian(w, 2));
}

}  // namespace tern
