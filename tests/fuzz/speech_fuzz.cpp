#include "tern/core/error.h"
#include "tern/data/speech_commands.h"
#include "tern/data/wav.h"

// Reads any bytes as a WAV file or as a manifest of clips. The code reads them or throws an InputError. The first byte
// chooses.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    if (data[0] % 2 == 0)
      tern::parse_wav({data + 1, size - 1}, "file", 16'000);
    else
      tern::read_speech_manifest(*tern::open_source("file", {data + 1, data + size}));
  } catch (const tern::InputError&) {
  }
  return 0;
}
