#include "tern/data/image_decoder.h"

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_STDIO
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_NO_PIC
#define STBI_NO_PSD
#define STBI_NO_TGA
#define STBI_FAILURE_USERMSG
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

#include <climits>
#include <string_view>

#include "tern/core/error.h"
#include "tern/data/byte_source.h"
#include "tern/data/jpeg_header.h"

namespace tern {
namespace {

constexpr int64_t kMostPixels = int64_t{1} << 27;

std::string_view text_of(std::span<const uint8_t> file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

/// Pixels that a byte of a whole file can hold at most.
int64_t pixels_per_byte(std::string_view file) {
  if (file.starts_with("\xff\xd8")) return 8 * 64;   // JPEG: a bit for each block of 8×8 in a progressive first scan
  if (file.starts_with("\x89PNG")) return 8 * 1032;  // deflate's best, of a bit each
  if (file.starts_with("GIF")) return 4096 * 2 / 3;  // LZW's longest string, of 12 bits
  return 8;
}

void check_extent(std::string_view file, const std::string& name, int64_t width, int64_t height) {
  check_input(width * height <= kMostPixels, name, ": declares ", width, "x", height, " pixels, expected ", kMostPixels,
              " or fewer");
  const int64_t room = std::ssize(file) * pixels_per_byte(file);
  check_input(width * height <= room, name, ": declares ", width, "x", height, " pixels, its ", file.size(),
              " bytes hold ", room, " at most");
}

/// What a decoder makes up where data end early differs; so does what it says.
void check_jpeg_end(std::string_view file, const std::string& name, size_t scan) {
  check_input(scan == 0 || file.substr(scan).rfind("\xff\xd9") != std::string_view::npos, name,
              ": truncated: no end of the image (FF D9) follows the scan at offset ", scan, " in ", file.size(),
              " bytes");
}

/// Whatever is transparent, before white; `channels` colours and an opacity each pixel.
void lay_on_white(std::span<uint8_t> pixels, size_t channels) {
  for (size_t at = 0; at < pixels.size(); at += channels + 1) {
    const int alpha = pixels[at + channels];
    for (size_t i = at; i < at + channels; ++i)
      pixels[i] = static_cast<uint8_t>((pixels[i] * alpha + 255 * (255 - alpha) + 127) / 255);
  }
}

}  // namespace

DecodedImage decode_image(std::span<const uint8_t> file, const std::string& name, int channels) {
  check(channels == 1 || channels == 3, "decode_image: ", channels, " channels, expected 1 or 3");
  const auto check_decoded = [&](bool decoded) {
    check_input(decoded, name, ": found no whole image (", decoded ? "" : stbi_failure_reason(),
                "), expected PNG, JPEG, BMP, GIF or PNM");
  };
  check_input(file.size() <= INT_MAX, name, ": found ", file.size(), " bytes, expected an image of less than 2 GiB");
  const auto size = static_cast<int>(file.size());
  int width = 0, height = 0, found = 0;
  check_decoded(stbi_info_from_memory(file.data(), size, &width, &height, &found) != 0);
  const std::string_view text = text_of(file);
  check_extent(text, name, width, height);

  DecodedImage image;
  if (text.starts_with("\xff\xd8")) {
    const JpegHeader header = read_jpeg_header(file);
    check_jpeg_end(text, name, header.scan);
    image.orientation_ = header.orientation;
  }
  // A byte more for each pixel, used or not: stb_image vectorizes colour for four alone.
  const int pixel_bytes = channels + 1;
  image.pixels_ = {stbi_load_from_memory(file.data(), size, &width, &height, &found, pixel_bytes), &stbi_image_free};
  check_decoded(image.pixels_ != nullptr);
  image.view_ = {.values = image.pixels_.get(),
                 .width = width,
                 .height = height,
                 .channels = channels,
                 .pixel_bytes = pixel_bytes,
                 .row_bytes = static_cast<size_t>(width) * static_cast<size_t>(pixel_bytes)};
  if (found == 2 || found == 4)
    lay_on_white({image.pixels_.get(), image.view_.row_bytes * static_cast<size_t>(height)},
                 static_cast<size_t>(channels));
  return image;
}

Image read_image(const std::filesystem::path& path, int channels) {
  check_input(!std::filesystem::is_directory(path), path.string(), ": is a folder, expected an image file");
  const DecodedImage decoded = decode_image(read_bytes(path), path.string(), channels);
  return upright(decoded.view(), decoded.orientation());
}

}  // namespace tern
