#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "tern/data/image.h"

namespace tern {

/// A decoded picture as its file stores it; the owner of its pixels.
class DecodedImage {
 public:
  ImageView view() const { return view_; }
  int orientation() const { return orientation_; }  ///< Exif's; see `upright`

 private:
  friend DecodedImage decode_image(std::span<const uint8_t> file, const std::string& name, int channels);
  std::unique_ptr<uint8_t, void (*)(void*)> pixels_{nullptr, nullptr};
  ImageView view_;
  int orientation_ = 1;
};

/// Decodes PNG, JPEG, BMP, GIF or PNM as grey (one channel) or in colour (three), 8 bits each; transparent places show
/// white paper. An InputError says what is wrong with the file, called `name`: a size that so few bytes cannot hold is
/// refused before there is memory for it. Thread-safe.
DecodedImage decode_image(std::span<const uint8_t> file, const std::string& name, int channels);

/// The picture in the file at `path`, decoded, and turned as its camera was held.
Image read_image(const std::filesystem::path& path, int channels = 1);

}  // namespace tern
