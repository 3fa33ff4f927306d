#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tern {

/// What stands around the pixels of a JPEG file.
struct JpegHeader {
  int orientation = 1;  ///< Exif's, 1 to 8; see `upright`
  size_t scan = 0;      ///< offset of the first scan's marker; 0: none was found
  /// What some decoders are not safe from, and where: "Huffman table of more than 255 codes"; empty: nothing.
  std::string_view damage = {};
  size_t damage_offset = 0;
};

/// Reads whatever bytes there are: what is damaged says nothing.
JpegHeader read_jpeg_header(std::span<const uint8_t> file);

}  // namespace tern
