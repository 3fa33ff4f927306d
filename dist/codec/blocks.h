#pragma once

#include <algorithm>
#include <cstdint>

#include "tern/core/shape.h"

namespace tern {

/// How a tensor is cut into blocks. A matrix [rows, columns], or filters as [out, in·kh·kw], is cut into tiles of
/// `tile_rows` × `tile_columns`: the largest divisors of each side that are at most `side`. A vector is cut into runs
/// of `run` elements, and its last run may be shorter. So each block has the same neighbours on all ranks.
struct BlockGrid {
  int64_t rows = 0, columns = 0;
  int64_t tile_rows = 1, tile_columns = 1;

  BlockGrid(const Shape& shape, int64_t side, int64_t run);

  int64_t count() const { return across() == 0 ? 0 : rows / tile_rows * across(); }
  int64_t elements(int64_t block) const { return tile_rows * width(block); }
  /// The length of a block's rows. Their elements are neighbours in the tensor.
  int64_t width(int64_t block) const { return std::min(tile_columns, columns - block % across() * tile_columns); }
  /// The tensor's element that is element `i` of a block, which is row-major.
  int64_t at(int64_t block, int64_t i) const {
    const int64_t w = width(block);
    return (block / across() * tile_rows + i / w) * columns + block % across() * tile_columns + i % w;
  }

 private:
  int64_t across() const { return columns == 0 ? 0 : (columns + tile_columns - 1) / tile_columns; }
};

}  // namespace tern
