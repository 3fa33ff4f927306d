#pragma once

#include <filesystem>
#include <span>

#include "tern/data/byte_source.h"
#include "tern/data/dataset.h"

namespace tern {

inline constexpr ImageSpec kCifar10Spec = {.channels = 3, .height = 32, .width = 32, .classes = 10};

/// Reads the records of the binary version that `source` must hold, as many as `labels` has room for: a label each, and
/// the planes of red, green and blue; `pixels` [n, 32, 32, 3]. An InputError names the source, the offset, what was
/// found and what was expected.
void read_cifar10_batch(ByteSource& source, std::span<uint8_t> pixels, std::span<uint8_t> labels);

/// CIFAR-10 (Krizhevsky, 2009) in its binary version: data_batch_1.bin to data_batch_5.bin and test_batch.bin, plain,
/// .gz or .xz, from `folder` or from cifar-10-batches-bin in it; or else from cifar-10-binary.tar.gz in `folder`.
MemoryDataset load_cifar10(const std::filesystem::path& folder, Split split);

}  // namespace tern
