#pragma once

#include <bit>
#include <vector>

#include "tests/data/packed_bytes.h"

namespace tern {

/// The bytes of a .mfc file with these numbers.
inline Bytes mfc(const std::vector<float>& numbers) {
  Bytes file;
  const auto add = [&](uint32_t word) {
    for (int shift = 24; shift >= 0; shift -= 8) file.push_back(static_cast<uint8_t>(word >> shift));
  };
  add(static_cast<uint32_t>(numbers.size()));
  for (const float number : numbers) add(std::bit_cast<uint32_t>(number));
  return file;
}

}  // namespace tern
