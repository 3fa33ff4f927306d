#include "tern/core/error.h"
#include "tern/data/image.h"
#include "tern/data/image_decoder.h"

// Reads any bytes as a picture. The code decodes, resizes and turns it, or throws an InputError. The first byte gives
// the channels and the side.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const int channels = data[0] % 2 == 0 ? 1 : 3, side = 1 + data[0] / 2;
  try {
    const auto image = tern::decode_image({data + 1, size - 1}, "file", channels);
    tern::upright(tern::resize(tern::middle(image.view(), side, side), side, side).view(), image.orientation());
  } catch (const tern::InputError&) {
  }
  return 0;
}
