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

Image read_image(const std::string& path) {
  check_input(!std::filesystem::is_directory(path), path, ": is a folder, expected an image file");
  const std::ifstream file(path);
  check_input(file.is_open(), path, ": cannot be read: ", std::strerror(errno));
  int width = 0, height = 0, channels = 0;
  const std::unique_ptr<stbi_uc, decltype(&stbi_image_free)> pixels(
      stbi_load(path.c_str(), &width, &height, &channels, 2), &stbi_image_free);
  check_input(pixels != nullptr, path, ": found no whole image (", pixels ? "" : stbi_failure_reason(),
              "), expected PNG, JPEG, BMP, GIF or PNM");
  Image image{.width = width, .height = height, .grey = {}};
  const size_t count = static_cast<size_t>(width) * static_cast<size_t>(height);
  image.grey.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const int grey = pixels.get()[2 * i], alpha = pixels.get()[2 * i + 1];
    image.grey[i] = static_cast<uint8_t>((grey * alpha + 255 * (255 - alpha) + 127) / 255);
  }
  return image;
}

Image resize(const Image& image, int width, int height) {
  const Coverage columns(image.width, width), rows(image.height, height);
  Image resized{.width = width, .height = height, .grey = {}};
  for (const auto& row : rows.parts)
    for (const auto& column : columns.parts) {
      double sum = 0;
      for (const auto& [y, row_share] : row)
        for (const auto& [x, column_share] : column) sum += row_share * column_share * image.at(x, y);
      resized.grey.push_back(static_cast<uint8_t>(sum + 0.5));
    }
  return resized;
}

}  // namespace tern
