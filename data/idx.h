#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

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

}  // namespace tern
