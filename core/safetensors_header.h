#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tern/core/safetensors.h"

namespace tern::detail {

/// The header's length, 8 bytes, stands before it.
inline constexpr uint64_t kHeaderStart = 8;
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;
/// The digits of "crc32c" where they are not known yet; the metadata and this entry stand first in a header by tern.
inline constexpr std::string_view kChecksumName = "crc32c";
inline constexpr std::string_view kChecksumBlank = "00000000";
inline constexpr std::string_view kChecksumPrefix = R"({"__metadata__":{"crc32c":")";

/// Where one tensor lies: bytes [begin, end) from the start of the data.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// The parsed header: entries in its order, covering the data without holes.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;
  Metadata metadata;
};

/// The JSON text, padded with spaces to a multiple of 8 bytes, with a blank checksum.
std::string format_header(const SafetensorsHeader& header);

/// `data_bytes` follow the header in `file`, which errors name.
SafetensorsHeader parse_header(std::string_view text, uint64_t data_bytes, const std::string& file);

/// The entries in the order of their data.
std::vector<const SafetensorsEntry*> in_data_order(const SafetensorsHeader& header);

}  // namespace tern::detail
