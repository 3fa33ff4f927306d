#include <zlib.h>

#include <vector>

#include "tern/core/error.h"
#include "tern/data/image.h"
#include "tern/data/image_decoder.h"

// Reads any bytes as a picture. The code decodes, resizes and turns it, or throws an InputError. The first byte gives
// the channels and the side, and whether the chunks of a PNG get right checksums, without which no pixel is decoded.

namespace {

void set_checksums(std::vector<uint8_t>& file) {
  constexpr size_t kBegin = 8, kOfChunk = 12;  // bytes
  for (size_t at = kBegin; at + kOfChunk <= file.size();) {
    const auto number = [&](size_t place) {
      return size_t{file[place]} << 24 | size_t{file[place + 1]} << 16 | size_t{file[place + 2]} << 8 | file[place + 3];
    };
    const size_t length = number(at);
    if (length > file.size() - at - kOfChunk) return;
    const auto sum = crc32_z(0, file.data() + at + 4, 4 + length);
    for (size_t i = 0; i < 4; ++i) file[at + 8 + length + i] = static_cast<uint8_t>(sum >> (24 - 8 * i));
    at += kOfChunk + length;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const int channels = data[0] % 2 == 0 ? 1 : 3, side = 1 + data[0] / 4;
  std::vector<uint8_t> file(data + 1, data + size);
  if (data[0] % 4 < 2 && file.size() > 1 && file[1] == 'P') set_checksums(file);
  try {
    const auto image = tern::decode_image(file, "file", channels);
    tern::upright(tern::resize(tern::middle(image.view(), side, side), side, side).view(), image.orientation());
  } catch (const tern::InputError&) {
  }
  return 0;
}
