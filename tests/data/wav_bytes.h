#pragma once

#include <string_view>
#include <vector>

#include "tests/data/packed_bytes.h"

namespace tern {

/// The bytes of a WAV file with one channel of 16 bits.
inline Bytes wav(const std::vector<int16_t>& samples, uint32_t rate = 16'000) {
  Bytes file;
  const auto text = [&](std::string_view word) { file.insert(file.end(), word.begin(), word.end()); };
  const auto number = [&](uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) file.push_back(static_cast<uint8_t>(value >> (8 * i)));
  };
  const auto bytes = static_cast<uint32_t>(2 * samples.size());
  text("RIFF"), number(36 + bytes, 4), text("WAVEfmt "), number(16, 4);
  number(1, 2), number(1, 2), number(rate, 4), number(2 * rate, 4), number(2, 2), number(16, 2);
  text("data"), number(bytes, 4);
  for (const int16_t sample : samples) number(static_cast<uint16_t>(sample), 2);
  return file;
}

}  // namespace tern
