#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tern {

/// Metadata of a JPEG file.
struct JpegHeader {
  int orientation = 1;  ///< Exif's orientation, 1 to 8; see `upright`
  size_t scan = 0;      ///< offset of the first scan's marker; 0 if there is none
  /// Damage that some decoders do not handle safely, such as "Huffman table of more than 255 codes". Empty if there is
  /// none.
  std::string_view damage = {};
  size_t damage_offset = 0;
};

/// Reads the header of a file; does not throw. If a field is damaged, it keeps its default.
JpegHeader read_jpeg_header(std::span<const uint8_t> file);

}  // namespace tern
