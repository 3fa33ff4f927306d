#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tern {

/// What stands around the pixels of a JPEG file.
struct JpegHeader {
  int orientation = 1;   ///< Exif's, 1 to 8; see `upright`
  size_t scan = 0;       ///< offset of the first scan's marker; 0: none was found
  size_t bad_table = 0;  ///< offset of a Huffman table with more than 256 codes; 0: none was found
};

/// Reads whatever bytes there are: what is damaged says nothing.
JpegHeader read_jpeg_header(std::span<const uint8_t> file);

}  // namespace tern
