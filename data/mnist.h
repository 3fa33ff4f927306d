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

/// Reads an IDX file, plain, gzip or xz (http://yann.lecun.com/exdb/mnist: big-endian magic 0x0000'08'rank, `rank`
/// extents, the bytes). Throws InputError with the file, the offset, what it found and what it expected. Compares the
/// size in the header with the file's size before it allocates memory.
IdxArray read_idx(const std::filesystem::path& path, int rank);

/// Loads MNIST, or another data set in its format (28×28, ten classes), from a folder with the IDX files
/// train-images-idx3-ubyte, train-labels-idx1-ubyte and t10k-..., plain or .gz; the spelling train-images.idx3-ubyte is
/// valid too. Throws InputError with the file, the offset, what it found and what it expected.
MemoryDataset load_mnist(const std::filesystem::path& folder, Split split);

}  // namespace tern
