#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "tern/data/image.h"

namespace tern {

/// A decoded picture in the orientation that its file stores; owns its pixels.
class DecodedImage {
 public:
  ImageView view() const { return view_; }
  int orientation() const { return orientation_; }  ///< Exif's orientation; see `upright`

 private:
  friend DecodedImage decode_image(std::span<const uint8_t> file, const std::string& name, int channels);
  std::unique_ptr<uint8_t, void (*)(void*)> pixels_{nullptr, nullptr};
  ImageView view_;
  int orientation_ = 1;
};

/// Decodes PNG, JPEG, BMP, GIF or PNM to grey (1 channel) or colour (3 channels), 8 bits each. Transparent parts become
/// white. Throws InputError if the file is wrong; the message calls it `name`. If the declared size is too large for
/// the file's length, throws before it allocates memory. Thread-safe.
DecodedImage decode_image(std::span<const uint8_t> file, const std::string& name, int channels);

/// Reads and decodes the picture at `path`, and rotates it upright as Exif says. Throws InputError if it cannot.
Image read_image(const std::filesystem::path& path, int channels = 1);

}  // namespace tern
