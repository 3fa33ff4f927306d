#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tern {

/// What stands before the pixels of a JPEG file.
struct JpegHeader {
  int orientation = 1;  ///< Exif's, 1 to 8; see `upright`
  size_t scan = 0;      ///< offset of the first scan's marker; 0: none was found
};

/// Reads whatever bytes there are: what is damaged says nothing.
JpegHeader read_jpeg_header(std::span<const uint8_t> file);

}  // namespace tern
