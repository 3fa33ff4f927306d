#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>

#include "tern/core/tensor.h"

namespace tern {

/// Reads an array that NumPy's `save` wrote (NEP 1: magic "\x93NUMPY", versions 1.0 to 3.0, little-endian, C order)
/// into a tensor on the CPU. The dtypes are u1, i8, f4 and f8 of NumPy: u8, i64, f32 and f64 here. The array has 1 to
/// Shape::kMaxRank dimensions; a single number of shape () is refused. Throws InputError with the path, what it found
/// and what it expected. Compares the size in the header with the file's size before it allocates memory.
Tensor read_npy(const std::filesystem::path& path);

/// Reads the same from a stream of `bytes` bytes. Messages call it `name`.
Tensor read_npy(std::istream& stream, uint64_t bytes, const std::string& name);

}  // namespace tern
