#include "tern/data/jpeg_header.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace tern {
namespace {

/// Numbers at offsets, where there are such bytes.
struct Reader {
  std::span<const uint8_t> bytes;
  bool little_endian = false;

  std::optional<uint32_t> number(size_t at, size_t size) const {
    if (at > bytes.size() || bytes.size() - at < size) return {};
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i) value = value << 8 | bytes[at + (little_endian ? size - 1 - i : i)];
    return value;
  }
  bool begins_with(std::string_view text) const {
    return bytes.size() >= text.size() && std::equal(text.begin(), text.end(), bytes.begin());
  }
};

/// Of the first directory of a TIFF file (TIFF 6.0, section 2), which is what Exif is.
int orientation_of(Reader tiff) {
  constexpr uint32_t kOrientation = 0x0112, kShort = 3;
  tiff.little_endian = tiff.begins_with("II");
  if (!tiff.little_endian && !tiff.begins_with("MM")) return 1;
  const auto directory = tiff.number(4, 4);
  const auto entries = directory ? tiff.number(*directory, 2) : std::nullopt;
  for (uint32_t i = 0; entries && i < *entries; ++i) {
    const size_t entry = size_t{*directory} + 2 + size_t{12} * i;
    const auto tag = tiff.number(entry, 2);
    if (!tag) break;
    if (*tag != kOrientation) continue;
    const auto value = tiff.number(entry + 2, 2) == kShort ? tiff.number(entry + 8, 2) : std::nullopt;
    return value && *value >= 1 && *value <= 8 ? static_cast<int>(*value) : 1;
  }
  return 1;
}

}  // namespace

JpegHeader read_jpeg_header(std::span<const uint8_t> file) {
  constexpr uint32_t kFill = 0xff, kApplication1 = 0xe1, kEnd = 0xd9, kScan = 0xda;
  constexpr std::string_view kExif{"Exif\0\0", 6};
  JpegHeader header;
  const Reader reader{file};
  for (size_t at = 2; reader.number(at, 1) == kFill;) {
    const auto marker = reader.number(at + 1, 1);
    if (marker == kFill) {
      ++at;
      continue;
    }
    if (marker == kScan) header.scan = at;
    const auto length = reader.number(at + 2, 2);
    if (!length || *length < 2 || marker == kScan || marker == kEnd) break;
    const size_t begin = std::min(at + 4, file.size()), end = std::min(at + 2 + *length, file.size());
    const Reader segment{file.subspan(begin, end - begin)};
    if (marker == kApplication1 && segment.begins_with(kExif))
      header.orientation = orientation_of({segment.bytes.subspan(kExif.size())});
    at += 2 + *length;
  }
  return header;
}

}  // namespace tern
