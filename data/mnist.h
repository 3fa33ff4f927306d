#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "tern/data/dataset.h"

namespace tern {

/// The contents of an IDX file of unsigned bytes.
struct IdxArray {
  std::vector<int64_t> extents;
  std::vector<uint8_t> values;  ///< row-major
};

/// Reads an IDX file (http://yann.lecun.com/exdb/mnist: big-endian magic 0x0000'08'rank, `rank` extents, the bytes),
/// plain or gzip. An InputError names file, offset, what was found and what was expected; what the header declares
/// is held against the file's size before memory is taken for it.
IdxArray read_idx(const std::filesystem::path& path, int rank);

/// MNIST, or another set in its form (28×28, ten classes), from a folder with the canonical IDX files:
/// train-images-idx3-ubyte, train-labels-idx1-ubyte and t10k-..., plain or .gz, also spelled train-images.idx3-ubyte.
/// An InputError names the file, the offset, what was found and what was expected.
MemoryDataset load_mnist(const std::filesystem::path& folder, Split split);

}  // namespace tern
