#include <string>

#include "tern/core/error.h"
#include "tern/data/npy.h"

// Reads any bytes as a file of NumPy. The code reads the array or throws an InputError. If the first byte is odd, the
// rest follows a good magic, version and length of the header. So the fuzzer reaches the header's text sooner.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string file(data + 1, data + size);
  if (data[0] % 2 == 1) {
    const size_t header = file.find('\n') == std::string::npos ? file.size() : file.find('\n') + 1;
    const std::string start = {
        '\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<char>(header), static_cast<char>(header >> 8)};
    file = start + file;
  }
  try {
    tern::read_npy(*tern::open_source("file", {file.begin(), file.end()}));
  } catch (const tern::InputError&) {
  }
  return 0;
}
