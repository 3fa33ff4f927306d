#include <vector>

#include "tern/core/error.h"
#include "tern/data/cifar10.h"
#include "tern/data/tar.h"

// Reads any bytes as a file of CIFAR-10: plain or packed, a batch or an archive of batches. The code reads the file or
// throws an InputError. The first byte gives the number of records in a batch, and says whether the rest is an archive.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t records = data[0] % 4;
  const bool archived = data[0] >= 128;
  std::vector<uint8_t> pixels(records * 3072), labels(records);
  try {
    auto source = tern::open_source("file", {data + 1, data + size});
    if (!archived) {
      tern::read_cifar10_batch(*source, pixels, labels);
      return 0;
    }
    tern::TarArchive archive(std::move(source));
    while (const auto file = archive.next()) tern::read_cifar10_batch(*file, pixels, labels);
  } catch (const tern::InputError&) {
  }
  return 0;
}
