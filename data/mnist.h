#pragma once

#include <filesystem>

#include "tern/data/dataset.h"

namespace tern {

/// MNIST, or another set in its form (28×28, ten classes), from a folder with the canonical IDX files:
/// train-images-idx3-ubyte, train-labels-idx1-ubyte and t10k-..., plain or .gz, also spelled train-images.idx3-ubyte.
/// An InputError names the file, the offset, what was found and what was expected.
MemoryDataset load_mnist(const std::filesystem::path& folder, Split split);

}  // namespace tern
