#pragma once

#include <filesystem>

#include "tern/core/tensor.h"
#include "tern/data/byte_source.h"

namespace tern {

/// Reads an array that NumPy's `save` wrote (NEP 1: magic "\x93NUMPY", versions 1.0 to 3.0, little-endian, C order)
/// into a tensor on the CPU. The dtypes are u1, i8, f4 and f8 of NumPy: u8, i64, f32 and f64 here. The array has 1 to
/// Shape::kMaxRank dimensions; a single number of shape () is refused. Throws InputError with the path, what it found
/// and what it expected. Compares the size in the header with the most that the source can hold before it allocates
/// memory.
Tensor read_npy(ByteSource& source);
/// Reads the same from a file, which may be packed with gzip or xz.
Tensor read_npy(const std::filesystem::path& path);

}  // namespace tern
