#include "tern/data/jpeg_header.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

namespace tern {
namespace {

/// Reads numbers at offsets; returns nullopt if the bytes end too early.
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

/// The orientation in the first directory of a TIFF file (TIFF 6.0, section 2). Exif data has this format. 1 if there
/// is none.
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

/// The Huffman tables defined so far, for DC and AC coefficients. Reports errors in their definition and use.
class HuffmanTables {
 public:
  /// Adds the tables of a segment's bytes [at, end). Like a decoder, reads a table that goes beyond `end`. Returns the
  /// damage, or "".
  std::string_view define(const Reader& file, size_t at, size_t end) {
    constexpr size_t kLengths = 16;
    while (at < end) {
      const uint32_t place = file.number(at, 1).value_or(0);
      uint32_t codes = 0;
      for (size_t i = 1; i <= kLengths; ++i) codes += file.number(at + i, 1).value_or(0);
      if (codes > 255) return "Huffman table of more than 255 codes";
      defined_[place >> 4 & 1] |= 1u << (place & 15);
      at += 1 + kLengths + codes;
    }
    return {};
  }

  /// Checks the tables that a scan uses; its header begins at `at` (ITU-T T.81, B.2.3). Returns the damage, or "".
  std::string_view use(const Reader& file, size_t at, bool progressive) const {
    const uint32_t components = file.number(at, 1).value_or(0);
    const size_t spectrum = at + 1 + size_t{2} * components;
    const bool first = file.number(spectrum, 1) == 0u;
    const bool refines = file.number(spectrum + 2, 1).value_or(0) >> 4 != 0;
    const bool uses[] = {!progressive || (first && !refines), !progressive || !first};
    for (size_t i = 0; i < components; ++i) {
      const uint32_t places = file.number(at + 2 + 2 * i, 1).value_or(0);
      if ((uses[0] && !(defined_[0] >> (places >> 4) & 1)) || (uses[1] && !(defined_[1] >> (places & 15) & 1)))
        return "scan with an undefined Huffman table";
    }
    return {};
  }

 private:
  uint32_t defined_[2] = {};  ///< a bit for each table; [0]: DC, [1]: AC
};

/// Offset of the next marker, from `at` on. Skips padding and the entropy-coded data of a scan. Returns file.size() if
/// there is none.
size_t find_marker(std::span<const uint8_t> file, size_t at) {
  const auto is_none = [](uint8_t byte) { return byte == 0 || byte == 0xff || (0xd0 <= byte && byte <= 0xd7); };
  for (; at + 1 < file.size(); ++at) {
    const void* fill = std::memchr(&file[at], 0xff, file.size() - 1 - at);
    if (!fill) break;
    at = static_cast<size_t>(static_cast<const uint8_t*>(fill) - file.data());
    if (!is_none(file[at + 1])) return at;
  }
  return file.size();
}

}  // namespace

JpegHeader read_jpeg_header(std::span<const uint8_t> file) {
  constexpr uint32_t kProgressive = 0xc2, kTables = 0xc4, kEnd = 0xd9, kScan = 0xda, kApplication1 = 0xe1;
  constexpr std::string_view kExif{"Exif\0\0", 6};
  JpegHeader header;
  HuffmanTables tables;
  bool progressive = false;
  const Reader reader{file};
  for (size_t at = find_marker(file, 2); at < file.size() && header.damage.empty();) {
    const uint32_t marker = file[at + 1];
    const uint32_t length = reader.number(at + 2, 2).value_or(0);
    if (marker == kEnd || length < 2) break;
    const size_t begin = std::min(at + 4, file.size()), end = std::min(at + 2 + length, file.size());
    if (marker == kScan && header.scan == 0) header.scan = at;
    progressive |= marker == kProgressive;
    if (marker == kTables) header.damage = tables.define(reader, begin, end);
    if (marker == kScan) header.damage = tables.use(reader, begin, progressive);
    if (!header.damage.empty()) header.damage_offset = at;
    const Reader segment{file.subspan(begin, end - begin)};
    if (marker == kApplication1 && segment.begins_with(kExif))
      header.orientation = orientation_of({segment.bytes.subspan(kExif.size())});
    at = find_marker(file, end);
  }
  return header;
}

}  // namespace tern
