#include "tern/core/error.h"
#include "tern/data/extreme.h"

// Reads any bytes as a file of sparse rows with labels. The code reads all samples or throws an InputError. If the
// first byte is odd, the rest follows a good first line.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string file(data + 1, data + size);
  if (data[0] % 2 == 1) file = "2 100 50\n" + file;
  try {
    const tern::ExtremeFile rows(*tern::open_source("file", {file.begin(), file.end()}));
    for (int64_t i = 0; i < rows.size(); ++i) tern::collate(rows.name(), rows.fields(), {i}, {rows.sample(i)});
  } catch (const tern::InputError&) {
  }
  return 0;
}
