#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tern {

/// The samples of a WAV file (RIFF, PCM) with one channel of 16 bits at `rate` samples per second. Chunks other than
/// "fmt " and "data" are skipped. Throws InputError if the file is damaged or of another form; the message has `name`,
/// the byte, what was found and what was expected.
std::vector<int16_t> parse_wav(std::span<const uint8_t> file, const std::string& name, int64_t rate);

}  // namespace tern
