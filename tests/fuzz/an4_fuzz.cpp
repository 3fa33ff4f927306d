#include "tern/core/error.h"
#include "tern/data/an4.h"
#include "tern/data/mfc.h"
#include "tern/data/transcript.h"

// Reads any bytes as cepstra, as a dictionary or as transcripts. The code reads them or throws an InputError. The first
// byte chooses.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto source = [&] { return tern::open_source("file", {data + 1, data + size}); };
  try {
    if (data[0] % 3 == 0)
      tern::an4_numbers(tern::parse_mfc({data + 1, size - 1}, "file", tern::An4::kCepstra));
    else if (data[0] % 3 == 1)
      tern::read_pronunciations(*source(), tern::An4::kPhones);
    else
      tern::read_transcripts(*source());
  } catch (const tern::InputError&) {
  }
  return 0;
}
