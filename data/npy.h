#pragma once

#include <filesystem>

#include "tern/core/tensor.h"

namespace tern {

/// Reads an array that NumPy's `save` wrote (NEP 1: magic "\x93NUMPY", versions 1.0 to 3.0, little-endian, C order) into
/// a tensor on the CPU. The dtypes are u1, i8, f4 and f8 of NumPy: u8, i64, f32 and f64 here. The tensor has at least
/// one and at most Shape's greatest number of dimensions. Throws InputError with the path, what it found and what it
/// expected. Compares the size in the header with the file's size before it allocates memory.
Tensor read_npy(const std::filesystem::path& path);

}  // namespace tern
