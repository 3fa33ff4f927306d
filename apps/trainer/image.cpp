#include "tern/apps/trainer/image.h"

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_FAILURE_USERMSG
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "tern/core/error.h"

namespace tern {
namespace {

/// For each of `to` pixels, how much of each of `from` pixels it covers.
struct Coverage {
  struct Part {
    int source;
    double share;
  };
  std::vector<std::vector<Part>> parts;

  Coverage(int from, int to) : parts(static_cast<size_t>(to)) {
    const double scale = static_cast<double>(from) / to;
    for (int i = 0; i < to; ++i) {
      const double begin = i * scale, end = (i + 1) * scale;
      for (int source = static_cast<int>(begin); source < from && source < end; ++source) {
        const double covered = std::min(end, source + 1.0) - std::max(begin, static_cast<double>(source));
        if (covered > 0) parts[static_cast<size_t>(i)].push_back({source, covered / scale});
      }
    }
  }
};

}  // namespace

Image read_image(const std::string& path, int channels) {
  check_input(!std::filesystem::is_directory(path), path, ": is a folder, expected an image file");
  const std::ifstream file(path);
  check_input(file.is_open(), path, ": cannot be read: ", std::strerror(errno));
  int width = 0, height = 0, found = 0;
  const std::unique_ptr<stbi_uc, decltype(&stbi_image_free)> pixels(
      stbi_load(path.c_str(), &width, &height, &found, channels + 1), &stbi_image_free);
  check_input(pixels != nullptr, path, ": found no whole image (", pixels ? "" : stbi_failure_reason(),
              "), expected PNG, JPEG, BMP, GIF or PNM");
  Image image{.width = width, .height = height, .channels = channels, .values = {}};
  const size_t count = static_cast<size_t>(width) * static_cast<size_t>(height),
               colours = static_cast<size_t>(channels);
  image.values.resize(count * colours);
  const uint8_t* from = pixels.get();
  for (size_t i = 0; i < count; ++i, from += colours + 1)
    for (size_t channel = 0; channel < colours; ++channel) {
      const int value = from[channel], alpha = from[colours];
      image.values[i * colours + channel] = static_cast<uint8_t>((value * alpha + 255 * (255 - alpha) + 127) / 255);
    }
  return image;
}

Image resize(const Image& image, int width, int height) {
  const Coverage columns(image.width, width), rows(image.height, height);
  Image resized{.width = width, .height = height, .channels = image.channels, .values = {}};
  for (const auto& row : rows.parts)
    for (const auto& column : columns.parts)
      for (int channel = 0; channel < image.channels; ++channel) {
        double sum = 0;
        for (const auto& [y, row_share] : row)
          for (const auto& [x, column_share] : column) sum += row_share * column_share * image.at(x, y, channel);
        resized.values.push_back(static_cast<uint8_t>(sum + 0.5));
      }
  return resized;
}

}  // namespace tern
