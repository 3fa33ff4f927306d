#pragma once

#include <filesystem>
#include <span>

#include "tern/data/byte_source.h"
#include "tern/data/dataset.h"

namespace tern {

inline constexpr ImageSpec kCifar10Spec = {.channels = 3, .height = 32, .width = 32, .classes = 10};

/// Reads labels.size() records of the binary version from `source`. A record is one label, then the red, green and blue
/// planes. `pixels` is [n, 32, 32, 3]. Throws InputError if `source` does not hold exactly these records; the message
/// names the source, the offset, what it found and what it expected.
void read_cifar10_batch(ByteSource& source, std::span<uint8_t> pixels, std::span<uint8_t> labels);

/// Loads CIFAR-10 (Krizhevsky, 2009) in its binary version: data_batch_1.bin to data_batch_5.bin and test_batch.bin,
/// each plain, .gz or .xz. Looks for them in `folder` and in `folder`/cifar-10-batches-bin. If the first file is in
/// neither, reads cifar-10-binary.tar.gz in `folder`. Throws InputError if a file is missing or wrong.
MemoryDataset load_cifar10(const std::filesystem::path& folder, Split split);

}  // namespace tern
